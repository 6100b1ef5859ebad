/** `npm run acceptance`: see docs/acceptance.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { partitionOf } from '../core/attestation/aws/partition.ts';
import { failureText } from './engine.ts';
import { helpText, parseOptions } from './options.ts';
import type { Options } from './options.ts';
import { planText } from './plan.ts';
import { leftText, page } from './report.ts';
import { runOnce } from './run.ts';
import { steps } from './steps.ts';
import { emulatorAt, limitsOf } from './world/emulator.ts';
import type { Emulated } from './world/emulator.ts';

const exitCodes = { passed: 0, failed: 1, usage: 2, noLogin: 3 } as const;

export async function main(
  argv: readonly string[],
  signal: AbortSignal,
  write: (text: string) => void,
): Promise<number> {
  const parsed = parseOptions(argv);
  if (parsed.kind === 'help') return (write(helpText), exitCodes.passed);
  if (parsed.kind === 'wrong')
    return (write(`acceptance: ${parsed.message}\n(--help shows the options)\n`), exitCodes.usage);
  const { options } = parsed;
  const partition = partitionOf(options.region)?.name;
  if (partition === undefined) return (write(`acceptance: there is no region ${options.region}\n`), exitCodes.usage);
  if (options.plan)
    return (
      write(planText(steps, { partition, account: options.account, region: options.region }, options.extras)),
      exitCodes.passed
    );
  return run(options, partition, signal, write);
}

async function run(
  { region, endpoint, idle, extras, subnet, keep, report: folder }: Options,
  partition: string,
  signal: AbortSignal,
  write: (text: string) => void,
): Promise<number> {
  try {
    const emulator = endpoint === undefined ? undefined : await emulated(endpoint);
    const report = await runOnce({
      steps,
      connection: { region, ...(endpoint === undefined ? {} : { endpoint }) },
      partition,
      ...(emulator === undefined ? {} : { emulator }),
      pollMilliseconds: emulator === undefined ? 5_000 : 200,
      idleMinutes: idle,
      extras,
      ...(subnet === undefined ? {} : { subnet }),
      keep,
      signal,
      log: (line) => write(`${line}\n`),
    });
    const { name } = report;
    mkdirSync(folder, { recursive: true });
    for (const [end, text] of [
      ['json', `${JSON.stringify(report, null, 2)}\n`],
      ['md', page(report)],
    ] as const)
      writeFileSync(join(folder, `${name}.${end}`), text);
    write(
      `\nLeft behind:\n${leftText(report.left)}\nAbout $${report.cost.dollars.toFixed(2)}. Report: ${join(folder, name)}.md\n`,
    );
    write(report.passed ? 'Passed\n' : 'Failed\n');
    return report.passed ? exitCodes.passed : exitCodes.failed;
  } catch (error) {
    write(failureText(error));
    return exitCodes.noLogin;
  }
}

async function emulated(endpoint: string): Promise<Emulated> {
  const name = await emulatorAt(endpoint);
  return { name, endpoint, limits: limitsOf(name), adapt: (template) => template };
}

if (import.meta.main) {
  const interrupt = new AbortController();
  // A second signal ends nothing either: the removal has to come to its end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      process.stdout.write('\nInterrupted: everything is removed, which takes some minutes\n');
      interrupt.abort();
    });
  process.exitCode = await main(process.argv.slice(2), interrupt.signal, (text) => void process.stdout.write(text));
  // A step that was interrupted may still wait for minutes.
  setTimeout(() => process.exit(), 2_000).unref();
}
