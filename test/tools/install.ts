/**
 * Installs test tools before the tests, so that the progress of long builds is visible:
 *
 *   node dev/run.mjs test/tools/install.ts [name…]      (all of them without a name)
 */
import { ensureTools, thisMachine, toolNames, type ToolName } from './tools.ts';
import type { Machine } from './recipe.ts';

export interface Installed {
  /** Tool → its path. */
  readonly ready: ReadonlyMap<ToolName, string>;
  /** Tool → one sentence for the user about why it is not available. */
  readonly missing: ReadonlyMap<ToolName, string>;
}

/**
 * Finds or installs the named tools (`toolsNeededBy` in needs.ts names those of test files).
 *
 * Before the first build it reports what the machine lacks, in one list with the commands that install it. Then it reports
 * the progress of each long step with the elapsed time. A tool that is not available is in `missing`; it is not an error,
 * since its suites skip themselves. In CI the caller must fail. Tests that need no tool may run meanwhile.
 */
export async function installFor(names: readonly ToolName[], options: Partial<Machine> = {}): Promise<Installed> {
  const ready = new Map<ToolName, string>();
  const missing = new Map<ToolName, string>();
  const machine = { ...thisMachine, ...options };
  for (const [name, location] of await ensureTools(names, { machine, forARun: true })) {
    if ('path' in location) ready.set(name, location.path);
    else missing.set(name, location.missing);
  }
  return { ready, missing };
}

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !(toolNames as string[]).includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`unknown tool: ${unknown.join(', ')}. Known: ${toolNames.join(', ')}\n`);
    process.exitCode = 2;
  } else {
    const { ready, missing } = await installFor(asked.length === 0 ? toolNames : (asked as ToolName[]));
    for (const [name, path] of ready) process.stdout.write(`ready    ${name}  ${path}\n`);
    for (const reason of missing.values()) process.stderr.write(`missing  ${reason}\n`);
    if (missing.size > 0) process.exitCode = 1;
  }
}
