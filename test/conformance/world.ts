/** What checks work with: calls to the endpoint, all its answers, and requests that several checks share. */
import { causesOf, parse, record } from './answers.ts';
import type { Answer } from './answers.ts';
import type { ConformanceFetch } from './http-client.ts';
import { ask, questionFor } from './questions.ts';
import type { Asked, Requester, SignerName, SignerQuestion } from './questions.ts';

export interface WorldOptions {
  /** `https://…/v1/clusters/<name>`, without a slash at the end. */
  readonly base: string;
  readonly fetch: ConformanceFetch;
  readonly signers: readonly SignerName[];
  /** The endpoint must serve each of `signers`, not only those with a profile. */
  readonly signersChosen: boolean;
  readonly requester: Requester;
  readonly concurrent: number;
  readonly callMilliseconds: number;
  readonly signal: AbortSignal;
}

export interface Call {
  readonly method?: string;
  /** Appended to the base; `/..` leads to another cluster. */
  readonly path?: string;
  readonly body?: string;
  /** A front door may answer this call itself. */
  readonly frontDoorMayAnswer?: true;
}

/** A request that its signer permits, and the answer. */
export interface Issuance extends Asked {
  readonly question: SignerQuestion;
  readonly answer: Answer;
}

export interface World {
  readonly options: WorldOptions;
  /** Every answer so far, including those of other checks. */
  readonly answers: readonly Answer[];
  /** One call. */
  deliver(call: Call): Promise<Answer>;
  /** POST …/sign; tries again while the endpoint is busy, as every client must. */
  sign(body: object | string): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** One request for each signer that the endpoint serves, sent once for all checks; never empty. */
  issuances(): Promise<readonly Issuance[]>;
  /** A new request for the first served signer: new name, key and UID. */
  question(): Promise<SignerQuestion>;
  questionFor(signerName: SignerName): SignerQuestion;
  serves(signerName: SignerName): Promise<boolean>;
  /** PEM by signer, of `…/trust-bundles`; empty if the answer is not about this cluster. */
  bundles(): Promise<ReadonlyMap<string, string>>;
}

/** Eight tries, up to three seconds apart: a throttled endpoint has some fifteen seconds to recover. */
const maxAttempts = 8;
const maxPauseMilliseconds = 3_000;

export function createWorld(options: WorldOptions): World {
  const answers: Answer[] = [];

  async function deliver({ method = 'GET', path = '', body, frontDoorMayAnswer }: Call): Promise<Answer> {
    const response = await options.fetch(new URL(`${options.base}${path}`).href, {
      method,
      // The headers of client-go.
      headers: {
        accept: 'application/json, */*',
        'user-agent': 'countersign-conformance',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: new TextEncoder().encode(body) }),
      signal: AbortSignal.any([options.signal, AbortSignal.timeout(options.callMilliseconds)]),
      redirect: 'manual',
    });
    const text = Buffer.from(await response.arrayBuffer()).toString('utf8');
    const json = parse(text);
    const answer: Answer = {
      call: `${method} ${path.replace(/\?.*/, '')}`,
      status: response.status,
      headers: response.headers,
      text,
      json,
      reusedConnection: response.reusedConnection,
      byFrontDoor:
        response.headers.get('x-countersign-outcome') === null &&
        (frontDoorMayAnswer === true || isThrottle(response.status, json)),
    };
    answers.push(answer);
    return answer;
  }

  async function sign(body: object | string): Promise<Answer> {
    const call = { method: 'POST', path: '/sign', body: typeof body === 'string' ? body : JSON.stringify(body) };
    for (let attempt = 1; ; attempt++) {
      const answer = await deliver(call);
      if ((answer.status !== 503 && answer.status !== 429) || attempt === maxAttempts) return answer;
      await pause(pauseAfter(answer, attempt), options.signal);
    }
  }

  const issuances = once(async () => {
    const all: Issuance[] = [];
    for (const signerName of options.signers) {
      const question = questionFor(signerName, options.requester);
      const asked = ask(question);
      all.push({ question, ...asked, answer: await sign(asked.object) });
    }
    const served = options.signersChosen ? all : all.filter(({ answer }) => !isUnknownSigner(answer));
    // If no signer is served, checks report the answer for the first one.
    return served.length > 0 ? served : all.slice(0, 1);
  });

  const servedNames = async (): Promise<readonly string[]> =>
    (await issuances()).map(({ question }) => question.signerName);

  return {
    options,
    answers,
    deliver,
    sign,
    get: (path) => deliver({ path }),
    issuances,
    async question() {
      const names = await servedNames();
      return questionFor(options.signers.find((name) => names.includes(name)) ?? firstSigner, options.requester);
    },
    questionFor: (signerName) => questionFor(signerName, options.requester),
    serves: async (signerName) => (await servedNames()).includes(signerName),
    bundles: once(async () => {
      const { cluster, signers } = record((await deliver({ path: '/trust-bundles' })).json);
      const named = Object.entries(record(signers)).flatMap(([name, pem]) =>
        typeof pem === 'string' ? [[name, pem] as const] : [],
      );
      return cluster === options.base.split('/').at(-1) ? new Map(named) : new Map();
    }),
  };
}

const firstSigner: SignerName = 'kubernetes.io/kube-apiserver-client-kubelet';

function isUnknownSigner({ status, json }: Answer): boolean {
  return status === 409 && causesOf(json).some(({ reason }) => reason === 'UnknownSigner');
}

/** API Gateway and Function URLs have their own form of 429 and 503, which cannot be changed. */
function isThrottle(status: number, json: unknown): boolean {
  const ownForm = record(json)['kind'] === undefined && Object.keys(record(json)).length <= 2;
  return status === 429 || (status === 503 && ownForm && /^message$/i.test(Object.keys(record(json))[0] ?? ''));
}

function pauseAfter({ json }: Answer, attempt: number): number {
  const asked = record(json)['retryAfterSeconds'];
  const milliseconds = typeof asked === 'number' && asked >= 0 ? asked * 1_000 : 200 * 2 ** attempt;
  return Math.min(milliseconds, maxPauseMilliseconds) * (0.5 + Math.random() / 2);
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
