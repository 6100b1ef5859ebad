/**
 * Puts the test tools into the cache ahead of the tests, so that the long builds happen where their progress is seen:
 *
 *   node test/tools/install.ts [name…]      (all of them without a name)
 */
import { ensureTool, inContinuousIntegration, toolNames, type ToolName } from './tools.ts';

/** Where each tool is goes to standard output; the reason for a missing one to standard error. */
async function install(names: readonly ToolName[]): Promise<{ missing: number }> {
  let missing = 0;
  for (const name of names) {
    const location = await ensureTool(name);
    if ('missing' in location) {
      missing++;
      process.stderr.write(`missing  ${location.missing}\n`);
    } else {
      process.stdout.write(`ready    ${name}  ${location.path}\n`);
    }
  }
  return { missing };
}

/** A tool that cannot be had is only reported: its suites will be skipped, saying why. In CI it is an error. */
export async function installAll(): Promise<void> {
  const { missing } = await install(toolNames);
  if (missing > 0 && inContinuousIntegration()) throw new Error('CI must have every test tool');
}

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !(toolNames as string[]).includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`unknown tool: ${unknown.join(', ')}. Known: ${toolNames.join(', ')}\n`);
    process.exitCode = 2;
  } else if (asked.length === 0) {
    await installAll();
  } else if ((await install(asked as ToolName[])).missing > 0) {
    process.exitCode = 1;
  }
}
