/**
 * Puts the test tools into the cache ahead of the tests, so that the long builds happen where their progress is seen:
 *
 *   node test/tools/install.ts [name…]      (all of them without a name)
 *
 * Without names a tool that cannot be had is only reported, except in CI: its tests will be skipped, saying why.
 */
import { ensureTool, inContinuousIntegration, toolNames, type ToolName } from './tools.ts';

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(toolNames as string[]).includes(name));
if (unknown.length > 0) {
  console.error(`unknown tool: ${unknown.join(', ')}. Known: ${toolNames.join(', ')}`);
  process.exit(2);
}

let complete = true;
for (const name of asked.length > 0 ? (asked as ToolName[]) : toolNames) {
  const location = await ensureTool(name);
  if ('missing' in location) {
    complete = false;
    console.error(`missing  ${location.missing}`);
  } else {
    console.log(`ready    ${name}  ${location.path}`);
  }
}
if (!complete && (asked.length > 0 || inContinuousIntegration())) process.exit(1);
