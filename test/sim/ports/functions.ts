/**
 * The sign and attest functions of a simulation: each call is a process of its own, as a function that was just started
 * or has forgotten everything, with the real handlers over ports that can fail at every call.
 */
import type { HttpAnswer, HttpHandler } from '../../../adapters/lambda/http.ts';
import type { CallLogEntry } from '../../../adapters/lambda/log.ts';
import type { WholeAnswer } from '../../../adapters/http/exchange.ts';
import { loopbackCaller } from '../../../dev/serve/loopback-caller.ts';
import type { AttestationProvider } from '../../../core/attestation/evidence/provider.ts';
import type { AttestationStore } from '../../../core/ports/attestation-store.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { CertificateLedger } from '../../../core/ports/certificate-ledger.ts';
import type { RetirementScope } from '../../../core/attestation/retirement/retire-gone.ts';
import { createAttestHandler } from '../../../lambdas/attest/handler.ts';
import type { AttestHandler } from '../../../lambdas/attest/handler.ts';
import { noCrls } from '../../harness/stack/no-crls.ts';
import { createSignHandler } from '../../../lambdas/sign/handler.ts';
import { call, within } from '../call.ts';
import { ledgerPort, nameOf, storePort } from './function-ports.ts';
import type { FunctionEvents, Invocation, Part } from './function-ports.ts';
import type { Scenario, InForce } from '../scenario.ts';
import { authorityWith } from '../actors/requests.ts';
import type { SimulatedAuthorities } from '../actors/requests.ts';
import { startProcess } from '../runtime.ts';
import type { Process, Runtime } from '../runtime.ts';
import { postedEvent } from '../../harness/lambda/callers.ts';

export interface FunctionPorts {
  readonly scenario: Scenario;
  readonly ledger: CertificateLedger;
  readonly store: AttestationStore;
  readonly providers: readonly AttestationProvider[];
  readonly authorities: SimulatedAuthorities;
}

/** Runs one call until it answers. Rejects when it dies before, or its time is over. */
export type Invoke = (part: Part, object: JsonObject, body: JsonObject) => Promise<WholeAnswer>;

export interface Functions {
  readonly invoke: Invoke;
  /** One run of attest that retires machines. Rejects as `invoke` does. */
  readonly retire: (scope: RetirementScope) => Promise<void>;
}

/** The service's own limits: lambdas/sign and adapters/lambda/invocation.ts. */
const functionMilliseconds = 25_000;
const invokeMilliseconds = 18_000;

export function createFunctions(runtime: Runtime, ports: FunctionPorts, events: FunctionEvents): Functions {
  const { timeline } = runtime;
  let started = 0;

  /** A process that lives until `serve` is done, or its time is over. */
  function run<T>(part: Part, object: JsonObject, serve: (call: Invocation, rules: InForce) => Promise<T>): Promise<T> {
    started += 1;
    return new Promise((resolve, reject) => {
      const process = startProcess(runtime, `${part}#${started}`, () => reject(new Error('the function died')));
      const cancel = timeline.after(functionMilliseconds, () => process.kill('when its time is over'));
      // Deployed with what is in force when it starts.
      serve({ part, process, object }, ports.scenario.at(process.startedAt)).then((served) => {
        cancel();
        resolve(served);
      }, reject);
    });
  }

  function invoke(part: Part, object: JsonObject, body: JsonObject): Promise<WholeAnswer> {
    return run(part, object, async (invocation, rules) => {
      const handler = part === 'sign' ? signHandler(invocation, rules) : attestHandler(invocation, rules).http;
      const answer = await handler(postedEvent(rules.cluster.name, part, body));
      const raw = rawOf(answer);
      runtime.tell(
        () =>
          `${invocation.process.name} answers ${answer.statusCode} ${answer.headers['x-countersign-outcome'] ?? ''} about ${nameOf(object)}`,
      );
      events.answers(invocation, raw);
      return raw;
    });
  }

  function retire(scope: RetirementScope): Promise<void> {
    return run('attest', retirementRun, async (invocation, rules) => {
      const handler = attestHandler(invocation, rules);
      const { name } = rules.cluster;
      const outcome =
        scope === 'scheduled'
          ? (await handler.scheduledLook(name)).outcome
          : (await handler.http(postedEvent(name, 'attest/look', scope))).headers['x-countersign-outcome'];
      runtime.tell(() => `${invocation.process.name} ends its look at machines: ${outcome ?? ''}`);
    });
  }

  function signHandler(invocation: Invocation, { cluster }: InForce): HttpHandler {
    const { process } = invocation;
    const ledger = ledgerPort(runtime, ports.ledger, invocation, events);
    const store = storePort(runtime, ports.store, invocation, events);
    return createSignHandler({
      crls: () => noCrls,
      version: 'simulated',
      cluster: (name) => (name === cluster.name ? cluster : undefined),
      ledger: () => ledger,
      locks: () => store,
      authority: async (_, ca) => authorityOf(ca, invocation),
      attestations: () => ({
        findVerdict: (...asked) => store.findVerdict(...asked),
        findIdentity: (...asked) => store.findIdentity(...asked),
        findLock: (...asked) => store.findLock(...asked),
        async attest(object) {
          const answer = await within(process, invokeMilliseconds, () =>
            call(runtime, process, {
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

  function authorityOf(ca: string, invocation: Invocation) {
    const authority = ports.authorities.get(ca);
    if (authority === undefined) throw new Error(`there is no CA ${ca}`);
    return authorityWith(authority, (tbs) =>
      call(runtime, invocation.process, {
        port: 'key',
        method: 'sign',
        about: `${nameOf(invocation.object)} with the ${authority.keyId}`,
        latency: 10,
        act: () => {
          if (ports.scenario.disabled(ca, timeline.now())) throw new Error('the key cannot be asked any more');
          events.signs(invocation, tbs, authority.keyId);
          return { bytes: authority.sign(tbs) };
        },
      }),
    );
  }

  function attestHandler(invocation: Invocation, { cluster }: InForce): AttestHandler {
    const attestation = attestationOf(invocation);
    return createAttestHandler({
      cluster: (name) => (name === cluster.name ? cluster : undefined),
      attestation: async () => attestation,
      ...common(invocation),
    });
  }

  function attestationOf(invocation: Invocation) {
    const providers = ports.providers.map((provider) => platformPort(provider, invocation.process));
    return {
      store: storePort(runtime, ports.store, invocation, events),
      providers: new Map(providers.map((provider) => [provider.name, provider])),
    };
  }

  function platformPort(provider: AttestationProvider, process: Process): AttestationProvider {
    const ask = <T>(method: string, about: string, act: () => Promise<T>): Promise<T> =>
      call(runtime, process, { port: 'platform', method, about, act, latency: 20 });
    const goneMachines = provider.goneMachines?.bind(provider);

    /** Page by page; each page can fail. */
    async function* listGone(): AsyncGenerator<string> {
      const listed = await ask('goneMachines', 'of all clusters', async () =>
        Array.fromAsync(goneMachines?.() ?? none),
      );
      for (let from = 0; from < listed.length; from += pageSize) {
        if (from > 0) await ask('goneMachines', `from ${from}`, async () => {});
        yield* listed.slice(from, from + pageSize);
      }
    }
    return {
      ...provider,
      async examine(evidence) {
        const examined = await provider.examine(evidence);
        if (!examined.ok) return examined;
        const { value } = examined;
        async function verify() {
          const machine = await ask('verify', value.identity, () => value.verify());
          if (!machine.ok || machine.value.device === undefined) return machine;
          const { device } = machine.value;
          const challenge = () => ask('challenge', value.identity, () => device.challenge());
          return { ok: true, value: { ...machine.value, device: { ...device, challenge } } } as const;
        }
        const { confirm } = value;
        if (confirm === undefined) return { ok: true, value: { ...value, verify } };
        return {
          ok: true,
          value: { ...value, verify, confirm: (seen) => ask('confirm', value.identity, () => confirm(seen)) },
        };
      },
      describe: (identity, now) => ask('describe', identity, () => provider.describe(identity, now)),
      ...(goneMachines === undefined ? {} : { goneMachines: listGone }),
    };
  }

  function common(invocation: Invocation) {
    const random = runtime.random.stream(invocation.process.name);
    return {
      caller: loopbackCaller,
      now: () => invocation.process.clock.now(),
      randomBytes: random.bytes,
      log: (entry: CallLogEntry) => {
        countEntry(runtime, invocation.part, entry);
        if (entry.why === 'Internal') events.alarm(invocation, entry.error);
      },
    };
  }

  return { invoke, retire };
}

/** Terminated machines on one page. */
const pageSize = 2;
const none: readonly string[] = [];
/** In place of a request. */
const retirementRun: JsonObject = { metadata: { name: 'retirement', uid: 'of machines' } };

/** What became of a call, as its own log tells it: for the coverage only; the oracle does not use it. */
function countEntry(runtime: Runtime, part: Part, entry: CallLogEntry): void {
  const { outcome, codes = [], why, decision, repeat, wouldRefuse } = entry;
  for (const code of codes) runtime.count(`code: ${code}`);
  if (why !== undefined) runtime.count(`step: ${part}: ${why}`);
  if (outcome === 'issued') runtime.count(`step: sign: issued${repeat === true ? ' again' : ''}`);
  if (decision !== undefined) runtime.count(`step: attest: ${decision}${repeat === true ? ' again' : ''}`);
  if (wouldRefuse === 'unjudged') runtime.count('step: audit: unjudged');
  else if (wouldRefuse !== undefined) runtime.count('step: audit: would refuse');
}

function rawOf({ statusCode, headers, body }: HttpAnswer): WholeAnswer {
  return { status: statusCode, headers: { ...headers }, body: Buffer.from(body) };
}
