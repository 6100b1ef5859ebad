/** Two replicas of the relay, which die, are replaced and stopped, and the lease between them. */
import { failure } from '../../../core/outcome/result.ts';
import { maxRelayedBytes } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { ApiAnswer, ApiProblem, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { KubernetesLease } from '../../../adapters/kubernetes/api.ts';
import type { RelayOptions } from '../../../lambdas/watch-relay/settings/options.ts';
import { createRelay } from '../../../lambdas/watch-relay/relay.ts';
import type { Connect } from '../ports/endpoint.ts';
import { policiesOf } from '../scenario.ts';
import type { Scenario } from '../scenario.ts';
import type { MachineObjects } from '../ports/machine-objects.ts';
import type { SimulatedRequests } from '../ports/request-api.ts';
import { call } from '../call.ts';
import type { PortCall } from '../call.ts';
import { startProcess } from '../runtime.ts';
import { bytesOf } from '../ports/stored.ts';
import type { Process, Runtime } from '../runtime.ts';

export interface RelayCluster {
  readonly runtime: Runtime;
  readonly requests: SimulatedRequests;
  readonly connect: Connect;
  readonly scenario: Scenario;
  /** Undefined where machines need no Machine object. */
  readonly objects: MachineObjects | undefined;
  readonly options: Omit<RelayOptions, 'identity' | 'policies' | 'signerNames'>;
}

export function startRelays({ runtime, requests, connect, scenario, objects, options }: RelayCluster): void {
  const { timeline } = runtime;
  const random = runtime.random.stream('relays');
  const leases = createLease(runtime);

  /** What is too large is refused without asking. */
  function watched(process: Process, endpoint: SigningEndpoint): SigningEndpoint {
    const look = (object: JsonObject): void => {
      if (bytesOf(object) <= maxRelayedBytes) return;
      const { name } = object['metadata'] as { readonly name: string };
      runtime.fail(`${process.name} posts ${name}, which has ${bytesOf(object)} bytes`);
    };
    const findObjects = objects?.connect(process);
    return {
      sign: (object, signal) => (look(object), endpoint.sign(object, signal)),
      attest: (object, context, signal) => (
        look(object),
        endpoint.attest(object, findObjects?.(object) ?? context, signal)
      ),
    };
  }

  function start(replica: string, life: number): void {
    const again = (): void => void timeline.after(random.between(100, 20_000), () => start(replica, life + 1));
    const process = startProcess(runtime, `relay-${replica}${life}`, again);
    runtime.tell(() => `${process.name} starts`);
    const endpoint = watched(process, connect(process));
    const api = requests.connect(process);
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const relay = createRelay(
      {
        ...options,
        signerNames: scenario.signerNames,
        // Read when it starts, and not again.
        policies: policiesOf(scenario.at(process.startedAt), scenario.approver),
        identity: process.name,
      },
      {
        api,
        endpoint,
        clock: process.clock,
        random: runtime.random.stream(process.name).next,
        log: silent,
        ...(scenario.leased ? { lease: leases.connect(process) } : {}),
      },
    );
    const stop = new AbortController();
    const stopped = relay.run(stop.signal);
    // An update rolls over the replicas: what is under way is finished, and a new one begins.
    if (random.chance(0.3))
      timeline.after(random.between(10_000, 60_000), () => {
        if (!process.alive() || !runtime.troubled()) return;
        runtime.tell(() => `${process.name} is told to stop`);
        stop.abort(new Error('stop'));
        void stopped.then(() => process.kill('as it was told'));
      });
  }

  start('a', 1);
  timeline.after(random.between(0, 10_000), () => start('b', 1));
}

function createLease(runtime: Runtime) {
  let lease: JsonObject | undefined;
  let version = 0;
  const conflict = failure<ApiProblem>({ why: 'Conflict', message: '' });
  const missing = failure<ApiProblem>({ why: 'NotFound', message: '' });

  function store(spec: unknown): ApiAnswer<JsonObject> {
    version += 1;
    lease = { metadata: { name: 'relay', resourceVersion: String(version) }, spec: structuredClone(spec) };
    return { ok: true, value: lease };
  }

  return {
    connect(process: Process): KubernetesLease {
      const ask = (asked: Pick<PortCall<ApiAnswer<JsonObject>>, 'method' | 'act'> & { signal: AbortSignal }) =>
        call(runtime, process, {
          ...asked,
          port: 'lease',
          about: '',
          told: (answer) => (answer.ok ? 'ok' : answer.problem.why),
        });
      return {
        get: (signal) =>
          ask({ method: 'get', signal, act: () => (lease === undefined ? missing : { ok: true, value: lease }) }),
        create: (spec, signal) =>
          ask({ method: 'create', signal, act: () => (lease === undefined ? store(spec) : conflict) }),
        update: (changed, signal) =>
          ask({
            method: 'update',
            signal,
            act: () => {
              const mine = (changed['metadata'] as JsonObject)['resourceVersion'];
              if (lease === undefined) return missing;
              return (lease['metadata'] as JsonObject)['resourceVersion'] === mine ? store(changed['spec']) : conflict;
            },
          }),
      };
    },
  };
}
