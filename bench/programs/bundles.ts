/**
 * The functions' bundles, as `cdk synth` makes them, compared with bundles of only their libraries, made in the same way:
 * their size, the time of their import, and the time until the first answer of a new environment.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { bundle } from '../../lib/bundle.ts';
import { contextIn } from '../../test/harness/lambda/callers.ts';
import { deployFunctions, services, subjects } from '../../test/harness/lambda/functions.ts';
import type { DeployedFunction, DeployedFunctions, Service } from '../../test/harness/lambda/functions.ts';
import { runtimeAccount, startLambda } from '../../test/harness/lambda/runtime.ts';
import type { LambdaAnswer } from '../../test/harness/lambda/runtime.ts';
import { temporaryFolder } from '../../test/harness/processes/processes.ts';
import { ensureTool } from '../../test/tools/tools.ts';
import { watchForOthers } from '../measure/process-usage.ts';
import { median, pairedRatio } from '../measure/statistics.ts';
import type { PairedRatio } from '../measure/statistics.ts';

export interface BundlesPlan {
  /** Fresh processes for the import, and for the first answer, of each bundle. */
  readonly imports: number;
  readonly answers: number;
}

/** Medians, in milliseconds. */
export interface BundleMeasure {
  readonly kilobytes: number;
  readonly imported: number;
  readonly answered: number;
}

export interface BundleResult {
  readonly service: Service;
  /** The libraries in the bare bundle. */
  readonly libraries: string;
  readonly own: BundleMeasure;
  readonly bare: BundleMeasure;
  /** The time of the function's bundle divided by that of the bare one, by round. */
  readonly ratios: { readonly imported: PairedRatio; readonly answered: PairedRatio };
}

export interface BundlesResult {
  /** What ran the handlers for their first answers: AWS's runtime emulator and client, or a plain process. */
  readonly runtime: 'lambda' | 'process';
  readonly imports: number;
  readonly answers: number;
  readonly functions: readonly BundleResult[];
  /** A handler that does nothing: the time of the runtime itself. */
  readonly nothing: BundleMeasure;
  readonly othersShare: number;
}

const root = resolve(import.meta.dirname, '../..');

/** A bundle in a folder, and the event for its first answer. */
interface Sample {
  readonly function: DeployedFunction;
  readonly event: () => unknown;
  readonly imported: number[];
  readonly answered: number[];
}

/** Undefined where no emulated AWS can be started; `leaveOut` gets the reason. */
export async function measureBundles(
  plan: BundlesPlan,
  say: (what: string) => void,
  leaveOut: (why: string) => void,
): Promise<BundlesResult | undefined> {
  const emulator = await ensureTool('ministack');
  if ('missing' in emulator) {
    leaveOut(emulator.missing);
    return undefined;
  }
  const missing = [await ensureTool('lambda-rie'), await ensureTool('lambda-ric')].find((tool) => 'missing' in tool);
  if (missing !== undefined) say(`bundles: first answers from plain processes, ${missing.missing}`);
  const runtime = missing === undefined ? 'lambda' : 'process';

  say('bundles');
  const deployed = await deployFunctions();
  const folder = temporaryFolder('bundles');
  try {
    await makeCa(deployed);
    const pairs = services.map((service) => {
      const own = deployed.functions[service];
      const { event, bare } = subjects[service];
      const bareFunction = { ...own, folder: writeBundle(bare.entry, join(folder.path, service)) };
      return { service, own: sampleOf(own, event), bare: sampleOf(bareFunction, bare.event) };
    });
    const empty = writeBundle('bench/programs/bare/nothing.ts', join(folder.path, 'nothing'));
    const nothing = sampleOf({ ...deployed.functions.authorizer, folder: empty }, () => ({}));
    const samples = [nothing, ...pairs.flatMap(({ own, bare }) => [own, bare])];

    const others = watchForOthers();
    // In turns, so that a slow moment of the machine slows down all; the first round only warms the page cache.
    const ordered = (round: number): readonly Sample[] => (round % 2 === 0 ? samples : samples.toReversed());
    for (let round = -1; round < plan.imports; round++)
      for (const { function: of, imported } of ordered(round)) record(round, imported, await importMilliseconds(of));
    say(`bundles: first answers`);
    const answer = runtime === 'lambda' ? firstUnderLambda : firstInProcess;
    for (let round = -1; round < plan.answers; round++)
      for (const { function: of, event, answered } of ordered(round))
        record(round, answered, await answer(of, event()));
    return {
      runtime,
      imports: plan.imports,
      answers: plan.answers,
      functions: pairs.map(({ service, own, bare }) => ({
        service,
        libraries: subjects[service].bare.libraries,
        own: measured(own),
        bare: measured(bare),
        ratios: {
          imported: pairedRatio(own.imported, bare.imported),
          answered: pairedRatio(own.answered, bare.answered),
        },
      })),
      nothing: measured(nothing),
      othersShare: others(),
    };
  } finally {
    await deployed.stop();
    folder.remove();
  }
}

/** The sign function needs a CA. */
async function makeCa({ functions: { ca } }: DeployedFunctions): Promise<void> {
  await firstInProcess(ca, { action: 'init' });
}

function sampleOf(of: DeployedFunction, event: () => unknown): Sample {
  return { function: of, event, imported: [], answered: [] };
}

function record(round: number, sample: number[], value: number): void {
  if (round >= 0) sample.push(value);
}

function measured({ function: { folder }, imported, answered }: Sample): BundleMeasure {
  return {
    kilobytes: statSync(join(folder, 'index.js')).size / 1_024,
    imported: median(imported),
    answered: median(answered),
  };
}

/** Writes the bundle of `entry`, made by the same bundler with the same settings. */
function writeBundle(entry: string, folder: string): string {
  mkdirSync(folder);
  for (const [name, content] of bundle({ root, entry, constants: {} }).files)
    writeFileSync(join(folder, name), content);
  return folder;
}

/** One `require` in a process that has loaded nothing else, as the runtime does it. */
async function importMilliseconds(of: DeployedFunction): Promise<number> {
  return (await inProcess(of, `require('./index.js'); done({});`)).milliseconds;
}

/** From the first event until its answer, with the start of the handler's process. */
async function firstUnderLambda({ name, ...rest }: DeployedFunction, event: unknown): Promise<number> {
  const environment = await startLambda({ functionName: name, ...rest });
  try {
    return timeOfSuccess(name, await environment.invoke(event));
  } finally {
    await environment.stop();
  }
}

/** Import and first answer, without a runtime around them. */
async function firstInProcess(of: DeployedFunction, event: unknown): Promise<number> {
  const context = JSON.stringify(contextIn(runtimeAccount));
  const script = `require('./index.js').handler(JSON.parse(process.argv[1]), ${context}).then(done);`;
  return timeOfSuccess(of.name, await inProcess(of, script, JSON.stringify(event)));
}

/** Throws when the answer is an error, which would count as a fast answer. */
function timeOfSuccess(name: string, { payload, milliseconds }: LambdaAnswer): number {
  const { errorType, statusCode = 200, isAuthorized = true } = payload as Readonly<Record<string, unknown>>;
  if (errorType !== undefined || statusCode !== 200 || isAuthorized !== true)
    throw new Error(`${name}: ${JSON.stringify(payload)}`);
  return milliseconds;
}

/** The script ends with `done`. The function's log is on standard output too, so the result is the last line. */
async function inProcess(
  { folder, environment }: DeployedFunction,
  script: string,
  ...args: readonly string[]
): Promise<LambdaAnswer> {
  const frame = `
    const begin = performance.now();
    const done = (payload) => {
      const milliseconds = performance.now() - begin;
      process.stdout.write('\\n' + JSON.stringify({ payload, milliseconds }), () => process.exit());
    };
    ${script}`;
  const options = { cwd: folder, env: environment, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', frame, ...args], options);
  return JSON.parse(stdout.split('\n').at(-1) ?? '') as LambdaAnswer;
}
