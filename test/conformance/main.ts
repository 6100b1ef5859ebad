/** `npm run conformance -- <url>`. docs/conformance.md */
import { readToken } from '../../adapters/signing-api/token-file.ts';
import type { Result } from './check.ts';
import { runConformance } from './conformance.ts';
import { httpClient } from './http-client.ts';
import type { ClientOptions, ConformanceFetch } from './http-client.ts';
import { helpText, parseOptions } from './options.ts';
import type { Settings } from './options.ts';
import { checkTable, resultLines, summary } from './report.ts';
import { signAws } from './sigv4.ts';

const exitCodes = { passed: 0, failed: 1, notRun: 2 } as const;

export interface Output {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
}
const terminal: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  // https://no-color.org
  colour: process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb',
};

export async function main(argv: readonly string[], output: Output = terminal): Promise<number> {
  const parsed = parseOptions(argv);
  switch (parsed.kind) {
    case 'help':
      output.out(helpText);
      return exitCodes.passed;
    case 'list':
      output.out(checkTable());
      return exitCodes.passed;
    case 'wrong':
      output.err(`conformance: ${parsed.message}\nconformance: --help shows all options\n`);
      return exitCodes.notRun;
    case 'run':
      return run(parsed.settings, output);
  }
}

async function run(settings: Settings, { out, err, colour }: Output): Promise<number> {
  const authorize = authorizer(settings);
  const client = httpClient({ ...settings, ...(authorize === undefined ? {} : { authorize }) });
  try {
    const unreachable = await probe(settings.base, client.fetch);
    if (unreachable !== undefined) {
      err(`conformance: ${unreachable}\n`);
      return exitCodes.notRun;
    }
    const table = settings.output === 'table';
    if (table) out(`${settings.base}\n\n`);
    const results = await runConformance({
      ...settings,
      fetch: client.fetch,
      onResult: (result: Result) => (table ? out : err)(resultLines(result, table && colour)),
    });
    if (table) out(`\n${summary(results)}`);
    else out(`${JSON.stringify({ base: settings.base, results }, null, 2)}\n`);
    return results.some(({ outcome }) => outcome === 'failed') ? exitCodes.failed : exitCodes.passed;
  } finally {
    client.close();
  }
}

/** The endpoint does not answer, or refuses the caller. All checks would fail for this one reason, so none is run. */
async function probe(base: string, fetch: ConformanceFetch): Promise<string | undefined> {
  const url = `${base.replace(/\/+$/, '')}/healthz`;
  try {
    const signal = AbortSignal.timeout(30_000);
    const { status } = await fetch(url, { method: 'GET', headers: {}, signal, redirect: 'manual' });
    return status === 401 || status === 403
      ? `${url} answered ${status}: it refuses the caller; see --header, --token-file and --sigv4`
      : undefined;
  } catch (error) {
    return `${url}: no answer: ${error instanceof Error ? error.message || error.name : String(error)}`;
  }
}

function authorizer(settings: Settings): ClientOptions['authorize'] {
  if (settings.sigv4) return signAws(settings);
  const { tokenFile } = settings;
  if (tokenFile === undefined) return undefined;
  // Read for each call: a projected token may be replaced during the run.
  return async () => {
    const token = await readToken(tokenFile);
    if (!token.ok) throw new Error(token.problem);
    return { authorization: `Bearer ${token.value}` };
  };
}

if (import.meta.main) {
  // `… | head` closes the pipe when it has read enough.
  process.stdout.on('error', () => process.exit(exitCodes.failed));
  process.exitCode = await main(process.argv.slice(2));
}
