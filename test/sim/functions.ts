/**
 * The sign and attest functions of a simulation: each call is a process of its own, as a function that was just started
 * or has forgotten everything, with the real handlers over ports that can fail at every call.
 */
import { interpretAttest, interpretSign } from '../../adapters/signer-answers.ts';
import type { RawAnswer } from '../../adapters/signer-answers.ts';
import type { HttpAnswer, HttpEvent, HttpHandler } from '../../adapters/lambda-http.ts';
import type { AttestationProvider } from '../../core/attestation/provider.ts';
import type { AttestationStore } from '../../core/attestation-store.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import { ThrottledError } from '../../core/ports.ts';
import type { CertificateLedger, FreshKey, Intent, JsonObject, OpenWrite, SigningEndpoint } from '../../core/ports.ts';
import { createAttestHandler } from '../../lambdas/attest/handler.ts';
import { createSignHandler } from '../../lambdas/sign/handler.ts';
import { authorityWith } from './requests.ts';
import type { SimulatedAuthority } from './requests.ts';
import { call, startProcess } from './stage.ts';
import type { Process, Stage } from './stage.ts';

export type Part = 'sign' | 'attest';

/** One call of a function, for whoever judges what it does. */
export interface Invocation {
  readonly part: Part;
  readonly process: Process;
  /** The request it is about. */
  readonly object: JsonObject;
}

export interface FunctionPorts {
  readonly cluster: ClusterConfiguration;
  readonly ledger: CertificateLedger;
  readonly store: AttestationStore;
  readonly provider: AttestationProvider;
  readonly authority: SimulatedAuthority;
}

/** Called when something took effect, answers heard or not. */
export interface FunctionEvents {
  opened(invocation: Invocation, uid: string, written: boolean): void;
  takenOver(invocation: Invocation, uid: string, written: boolean): void;
  signs(invocation: Invocation, tbs: Uint8Array): void;
  ledgerChanged(invocation: Invocation): void;
  claimed(invocation: Invocation, claim: Parameters<AttestationStore['claim']>[0], written: boolean): void;
  answers(invocation: Invocation, answer: RawAnswer): void;
  alarm(invocation: Invocation, error: unknown): void;
}

export interface Functions {
  /** For one client. */
  connect(client: Process): SigningEndpoint;
}

/** The service's own limits: lambdas/sign and adapters/lambda-invocation.ts. */
const functionMilliseconds = 25_000;
const invokeMilliseconds = 18_000;
const clientMilliseconds = 29_000;

export function createFunctions(stage: Stage, ports: FunctionPorts, events: FunctionEvents): Functions {
  const { timeline } = stage;
  let started = 0;

  /** Runs one call until it answers, dies or its time is over. */
  function invoke(part: Part, object: JsonObject, body: JsonObject): Promise<RawAnswer> {
    started += 1;
    return new Promise((resolve, reject) => {
      const process = startProcess(stage, `${part}#${started}`, () => reject(new Error('the function died')));
      const invocation: Invocation = { part, process, object };
      const cancel = timeline.after(functionMilliseconds, () => process.kill('when its time is over'));
      const handler = part === 'sign' ? signHandler(invocation) : attestHandler(invocation);
      handler(eventOf(part, ports.cluster.name, body)).then((answer) => {
        cancel();
        const raw = rawOf(answer);
        stage.tell(
          () => `${process.name} answers ${answer.statusCode} ${answer.headers['x-countersign-outcome'] ?? ''}`,
        );
        events.answers(invocation, raw);
        resolve(raw);
      }, reject);
    });
  }

  function signHandler(invocation: Invocation): HttpHandler {
    const { process } = invocation;
    const ledger = ledgerPort(invocation);
    const store = storePort(invocation);
    const authority = authorityWith(ports.authority, (tbs) =>
      call(stage, process, {
        port: 'key',
        method: 'sign',
        about: nameOf(invocation.object),
        latency: 10,
        act: () => {
          events.signs(invocation, tbs);
          return { bytes: ports.authority.sign(tbs) };
        },
      }),
    );
    return createSignHandler({
      version: 'simulated',
      cluster: (name) => (name === ports.cluster.name ? ports.cluster : undefined),
      ledger: () => ledger,
      authority: async () => authority,
      attestations: () => ({
        findVerdict: (...asked) => store.findVerdict(...asked),
        findIdentity: (...asked) => store.findIdentity(...asked),
        async attest(object) {
          const answer = await within(process, invokeMilliseconds, () =>
            call(stage, process, {
              port: 'attest',
              method: 'invoke',
              about: nameOf(object),
              act: () => invoke('attest', object, { request: object }),
              told: ({ status }) => String(status),
            }),
          );
          if (answer.status !== 200) throw new Error(`the attest function answered with status ${answer.status}`);
        },
      }),
      ...common(invocation),
    });
  }

  function attestHandler(invocation: Invocation): HttpHandler {
    const { process } = invocation;
    const { provider } = ports;
    const ask = <T>(method: string, about: string, act: () => Promise<T>): Promise<T> =>
      call(stage, process, { port: 'platform', method, about, act, latency: 20 });
    const asked: AttestationProvider = {
      ...provider,
      examine(evidence) {
        const examined = provider.examine(evidence);
        if ('violations' in examined) return examined;
        return { ...examined, verify: () => ask('verify', examined.identity, () => examined.verify()) };
      },
      describe: (identity, now) => ask('describe', identity, () => provider.describe(identity, now)),
    };
    const attestation = { store: storePort(invocation), providers: new Map([[provider.name, asked]]) };
    return createAttestHandler({
      cluster: (name) => (name === ports.cluster.name ? ports.cluster : undefined),
      attestation: async () => attestation,
      ...common(invocation),
    });
  }

  function common(invocation: Invocation) {
    const random = stage.random.stream(invocation.process.name);
    return {
      now: () => invocation.process.clock.now(),
      randomBytes: random.bytes,
      log: ({ why, error }: { readonly why?: string; readonly error?: unknown }) => {
        if (why === 'Internal') events.alarm(invocation, error);
      },
    };
  }

  function ledgerPort(invocation: Invocation): CertificateLedger {
    const { ledger } = ports;
    const ask = <T>(method: string, act: () => Promise<T>, done?: (answer: T) => void): Promise<T> =>
      call(stage, invocation.process, {
        port: 'ledger',
        method,
        about: nameOf(invocation.object),
        act,
        told: outcomeOf,
        done: (answer) => {
          done?.(answer);
          events.ledgerChanged(invocation);
        },
      });
    const open = (intent: Intent, freshKey?: FreshKey): Promise<OpenWrite> =>
      ask(
        'open',
        () => ledger.open(intent, freshKey),
        ({ written }) => events.opened(invocation, intent.uid, written),
      );
    return {
      find: (uid) => ask('find', () => ledger.find(uid)),
      open: open as CertificateLedger['open'],
      takeOver: (uid, ...more) =>
        ask(
          'takeOver',
          () => ledger.takeOver(uid, ...more),
          ({ written }) => events.takenOver(invocation, uid, written),
        ),
      release: (...asked) => ask('release', () => ledger.release(...asked)),
      complete: (...asked) => ask('complete', () => ledger.complete(...asked)),
      expire: (...asked) => ask('expire', () => ledger.expire(...asked)),
    };
  }

  function storePort(invocation: Invocation): AttestationStore {
    const { store } = ports;
    const ask = <T>(method: string, about: string, act: () => Promise<T>, done?: (answer: T) => void): Promise<T> =>
      call(stage, invocation.process, {
        port: 'attestations',
        method,
        about,
        act,
        told: outcomeOf,
        ...(done === undefined ? {} : { done }),
      });
    const about = nameOf(invocation.object);
    return {
      findVerdict: (...asked) => ask('findVerdict', about, () => store.findVerdict(...asked)),
      findIdentity: (...asked) => ask('findIdentity', asked[0], () => store.findIdentity(...asked)),
      findNode: (...asked) => ask('findNode', asked[0], () => store.findNode(...asked)),
      look: (...asked) => ask('look', about, () => store.look(...asked)),
      claim: (claim, now) =>
        ask(
          'claim',
          `${about}: ${claim.verdict.decision} ${claim.verdict.violations?.[0].code ?? claim.verdict.identity ?? ''}`,
          () => store.claim(claim, now),
          ({ written }) => events.claimed(invocation, claim, written),
        ),
    };
  }

  return {
    connect(client) {
      async function post(part: Part, object: JsonObject, body: JsonObject, signal: AbortSignal): Promise<RawAnswer> {
        try {
          return await within(client, clientMilliseconds, () =>
            call(stage, client, {
              port: 'http',
              method: part,
              about: nameOf(object),
              signal,
              told: ({ status }) => String(status),
              act: () => {
                if (stage.troubled() && stage.random.chance(stage.rates.duplicate)) again(part, object, body);
                return invoke(part, object, body).catch(() => failed(stage.random.pick([500, 502, 504])));
              },
            }),
          );
        } catch (error) {
          if (error instanceof ThrottledError) return failed(429);
          throw error;
        }
      }
      /** Somewhere on the way the call is repeated: soon, or when everybody has forgotten it. */
      function again(part: Part, object: JsonObject, body: JsonObject): void {
        timeline.after(stage.random.between(0, 40_000), () => {
          stage.tell(() => `http repeats ${part} ${nameOf(object)}`);
          invoke(part, object, body).catch(() => {});
        });
      }
      return {
        sign: async (object, signal) => interpretSign(await post('sign', object, object, signal)),
        attest: async (object, context, signal) => {
          const body = { request: object, ...(context === undefined ? {} : { context }) };
          return interpretAttest(await post('attest', object, body, signal));
        },
      };
    },
  };
}

/** A client's own patience. */
function within<T>({ clock }: Process, milliseconds: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => reject(new Error('no answer in time')));
    work().then(
      (answer) => {
        cancel();
        resolve(answer);
      },
      (error: unknown) => {
        cancel();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}

function eventOf(part: Part, cluster: string, body: JsonObject): HttpEvent {
  const path = `/v1/clusters/${cluster}/${part}`;
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: '',
    headers: { 'content-type': 'application/json' },
    requestContext: { http: { method: 'POST', path } },
    body: JSON.stringify(body),
    isBase64Encoded: false,
  };
}

function rawOf({ statusCode, headers, body }: HttpAnswer): RawAnswer {
  return { status: statusCode, headers: { ...headers }, body: Buffer.from(body) };
}

/** What a front door says when it is not us who speak. */
function failed(status: number): RawAnswer {
  return { status, headers: {}, body: Buffer.from('{"message":"Internal Server Error"}') };
}

function outcomeOf(answer: unknown): string {
  if (answer === undefined) return 'nothing';
  const { written, state, why, decision } = answer as Readonly<Record<string, unknown>>;
  if (written === true) return 'written';
  if (written === false) return `not written${typeof why === 'string' ? `: ${why}` : ''}`;
  return [state, decision].find((word) => typeof word === 'string') ?? 'found';
}

/** Of an object: what people call it. */
export function nameOf(object: JsonObject): string {
  const { name, uid } = object['metadata'] as { readonly name: string; readonly uid: string };
  return `${name}/${uid.slice(0, 4)}`;
}
