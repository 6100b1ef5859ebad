/** `npm run demo`: plays a scenario on this machine and exits 0 only if all its checks hold. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DemoFailure } from './demo/scenario.ts';
import type { DemoWorld, Scenario } from './demo/scenario.ts';
import { hijackScenario } from './demo/scenarios/hijack.ts';
import { joinScenario } from './demo/scenarios/join.ts';
import { reportScenario } from './demo/scenarios/report.ts';
import { revokeScenario } from './demo/scenarios/revoke.ts';
import { kubeadmScenario } from './demo/scenarios/kubeadm.ts';
import { rotateScenario } from './demo/scenarios/rotate.ts';
import { signScenario } from './demo/scenarios/sign.ts';
import { tpmScenario } from './demo/scenarios/tpm.ts';
import { terminalFor } from './demo/terminal.ts';
import { usageMessage } from '../core/outcome/error-message.ts';

const scenarios: readonly [Scenario, ...Scenario[]] = [
  signScenario,
  hijackScenario,
  joinScenario,
  tpmScenario,
  rotateScenario,
  revokeScenario,
  reportScenario,
  kubeadmScenario,
];
const exitCodes = { ok: 0, failed: 1, usage: 2, configuration: 3 } as const;
/** Much longer than any scenario takes. A demo that hangs fails after this time. */
const patienceMilliseconds = 60_000;

const helpText = `Shows the whole path of a certificate request on this machine, in seconds: no cloud, cluster or container.

Usage: npm run demo [-- [scenario] [options]]

  --list             the scenarios
  --kubeconfig FILE  (sign) a real cluster instead of the built-in stand-in: two requests of the signer
                     countersign.dev/demo are made, approved with your rights, answered and deleted
  --help

Examples:
  npm run demo
  npm run demo -- hijack
  npm run demo -- join
  npm run demo -- tpm
  npm run demo -- revoke
  npm run demo -- kubeadm
  npm run demo -- rotate
  npm run demo -- report
  npm run demo -- sign --kubeconfig ~/.kube/config

Exit codes: 0 all checks passed, 1 a check failed, 2 usage, 3 no such file.
`;

/** What a test may change, and the command line cannot. */
export interface DemoOverrides extends Partial<DemoWorld> {
  readonly patienceMilliseconds?: number;
}

export async function main(argv: readonly string[], overrides: DemoOverrides = {}): Promise<number> {
  const terminal = overrides.terminal ?? terminalFor(process.stdout, process.env);
  const parsed = parseDemo(argv);
  if ('text' in parsed) {
    terminal.line(parsed.text);
    return parsed.code;
  }
  const { scenario, kubeconfig } = parsed;
  const started = performance.now();
  const patience = overrides.patienceMilliseconds ?? patienceMilliseconds;
  terminal.line(`Countersign demo: ${scenario.summary}.`);
  // An interrupted demo still cleans up, so that a real cluster stays unchanged.
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    await scenario.run({
      signal: AbortSignal.any([AbortSignal.timeout(patience), interrupted.signal]),
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...overrides,
      terminal,
    });
  } catch (error) {
    terminal.line(`\nfailed: ${reasonOf(error, patience)}`);
    return exitCodes.failed;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
  terminal.line(`\nok: ${scenario.proven}. ${((performance.now() - started) / 1_000).toFixed(1)} s`);
  return exitCodes.ok;
}

type Parsed =
  | { readonly scenario: Scenario; readonly kubeconfig: string | undefined }
  | { readonly text: string; readonly code: number };

function parseDemo(argv: readonly string[]): Parsed {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: true,
      options: {
        list: { type: 'boolean', default: false },
        kubeconfig: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    return usage(usageMessage(error));
  }
  const { values, positionals } = parsed;
  if (values.help) return { text: helpText, code: exitCodes.ok };
  if (values.list) return { text: list(), code: exitCodes.ok };
  const [name = scenarios[0].name, ...more] = positionals;
  const scenario = scenarios.find((each) => each.name === name);
  if (scenario === undefined || more.length > 0) return usage(`no scenario "${positionals.join(' ')}"\n\n${list()}`);
  const { kubeconfig } = values;
  if (kubeconfig !== undefined && !scenario.onRealCluster)
    return usage(`--kubeconfig: "${scenario.name}" plays on this machine only`);
  if (kubeconfig !== undefined && !existsSync(kubeconfig))
    return { text: `demo: there is no file ${kubeconfig}`, code: exitCodes.configuration };
  return { scenario, kubeconfig };
}

function list(): string {
  return scenarios.map(({ name, summary }) => `  ${name.padEnd(10)}  ${summary}`).join('\n');
}

function usage(message: string): Parsed {
  return { text: `demo: ${message}\ndemo: --help shows all options`, code: exitCodes.usage };
}

/** One sentence for a failure that the user can correct; a stack trace only for a fault of the code. */
function reasonOf(error: unknown, patience: number): string {
  if (error instanceof DemoFailure) return error.message;
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `not done in ${patience / 1_000} s`;
  return error.stack ?? error.message;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
