/**
 * Checks the webhook behaviour of an endpoint from outside: `npm run conformance -- <url>`, and `runConformance` for
 * suites with a deployment. docs/conformance.md
 */
import type { Check, Finding, Result } from './check.ts';
import { checks as allChecks } from './checks.ts';
import { httpClient } from './http-client.ts';
import type { ConformanceFetch } from './http-client.ts';
import { signerNames } from './questions.ts';
import type { Requester, SignerName } from './questions.ts';
import { createWorld } from './world.ts';
import type { World } from './world.ts';

export interface ConformanceOptions {
  /** `https://…/v1/clusters/<name>`. */
  readonly base: string;
  /** Sends the calls with their credentials: the global `fetch`, or `httpClient(…).fetch`, which is the default. */
  readonly fetch?: ConformanceFetch;
  /** Signers that the endpoint must serve. Default: those of the three that have a profile. */
  readonly signers?: readonly SignerName[];
  /** Requester for kube-apiserver-client, where its profile names its requesters. */
  readonly requester?: Requester;
  /** Ids of checks to run; the checks that they need run too. */
  readonly only?: readonly string[];
  readonly skip?: readonly string[];
  /** Simultaneous deliveries in check `concurrent`. */
  readonly concurrent?: number;
  readonly callMilliseconds?: number;
  /** For the whole run; checks that have not run by then have failed. */
  readonly timeoutMilliseconds?: number;
  readonly onResult?: (result: Result) => void;
}

export const defaults = {
  requester: { username: 'countersign-conformance', groups: ['system:authenticated'] },
  concurrent: 20,
  // The timeout of the webhook client.
  callMilliseconds: 30_000,
  timeoutMilliseconds: 180_000,
} as const;

/** Runs every check, one after the other. Never rejects because of the endpoint: a failure is a result. */
export async function runConformance(options: ConformanceOptions): Promise<readonly Result[]> {
  const base = options.base.replace(/\/+$/, '');
  const wrong = baseProblem(base);
  if (wrong !== undefined) throw new RangeError(wrong);
  const client = options.fetch === undefined ? httpClient() : undefined;
  const overall = new AbortController();
  const timeoutMilliseconds = options.timeoutMilliseconds ?? defaults.timeoutMilliseconds;
  const timer = setTimeout(
    () => overall.abort(new Error(`the time is up (${timeoutMilliseconds / 1_000} s)`)),
    timeoutMilliseconds,
  );
  try {
    const world = createWorld({
      base,
      fetch: options.fetch ?? client?.fetch ?? fetch,
      signers: options.signers ?? signerNames,
      signersChosen: options.signers !== undefined,
      requester: options.requester ?? defaults.requester,
      concurrent: options.concurrent ?? defaults.concurrent,
      callMilliseconds: options.callMilliseconds ?? defaults.callMilliseconds,
      signal: overall.signal,
    });
    return await runAll(selected(options.only), options.skip ?? [], world, options.onResult);
  } finally {
    clearTimeout(timer);
    client?.close();
  }
}

/** Why this is not the base URL of an endpoint, as a message for the user. */
export function baseProblem(base: string): string | undefined {
  let url: URL;
  try {
    url = new URL(base);
  } catch {
    return `${base}: not a URL`;
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${base}: not an http or https URL`;
  if (url.username !== '' || url.password !== '')
    return 'the URL must not carry credentials: use --header or --token-file';
  if (url.search !== '' || url.hash !== '') return `${base}: the URL must not have a query or fragment`;
  if (!/\/v1\/clusters\/[a-z0-9-]{1,63}\/?$/.test(url.pathname))
    return `${base}: the URL must end in /v1/clusters/<name>; /sign and the other paths are added`;
  return undefined;
}

function selected(only: readonly string[] | undefined): readonly Check[] {
  if (only === undefined) return allChecks;
  const wanted = new Set(only);
  // From the end, so that indirect needs are included.
  for (const { id, needs = [] } of allChecks.toReversed())
    if (wanted.has(id)) for (const need of needs) wanted.add(need);
  return allChecks.filter(({ id }) => wanted.has(id));
}

async function runAll(
  checks: readonly Check[],
  skip: readonly string[],
  world: World,
  onResult: ConformanceOptions['onResult'],
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const check of checks) {
    const started = performance.now();
    const missing = (check.needs ?? []).filter((need) => !passed(results, need) && !skip.includes(need));
    const finding: Finding = skip.includes(check.id)
      ? { skipped: 'left out by --skip' }
      : missing.length > 0
        ? { skipped: `needs ${missing.join(', ')}` }
        : await find(check, world);
    const { id, rule, source } = check;
    const result: Result = {
      id,
      rule,
      source,
      ...judged(finding),
      milliseconds: Math.round(performance.now() - started),
    };
    results.push(result);
    onResult?.(result);
  }
  return results;
}

function passed(results: readonly Result[], id: string): boolean {
  return results.some((result) => result.id === id && result.outcome === 'passed');
}

async function find(check: Check, world: World): Promise<Finding> {
  try {
    return await check.run(world);
  } catch (error) {
    return { problems: [`no answer: ${messageOf(error)}`] };
  }
}

/** Node's fetch has the reason in `cause`. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error.cause instanceof Error ? error.cause.message : '';
  return [error.message, inner].filter((text) => text !== '').join(': ') || error.name;
}

function judged(finding: Finding): Pick<Result, 'outcome' | 'detail'> {
  if ('skipped' in finding) return { outcome: 'skipped', detail: finding.skipped };
  // Problems quote the endpoint: its text must not control the terminal.
  if (finding.problems.length > 0)
    return { outcome: 'failed', detail: finding.problems.join('\n').replaceAll(/(?!\n)\p{Cc}/gu, '\uFFFD') };
  return { outcome: 'passed', detail: finding.note ?? '' };
}
