/** The relay in this process, between an API server and the sign endpoint of one cluster. */
import { connectSigner } from '../../adapters/signing-api/client.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { RequestApi } from '../../core/ports/kubernetes-api.ts';
import { createRelay } from '../../lambdas/watch-relay/relay.ts';
import { systemClock } from '../../lambdas/watch-relay/runtime/system-clock.ts';
import type { RelayOptions } from '../../lambdas/watch-relay/settings/options.ts';

export interface LocalRelayOptions {
  readonly api: RequestApi;
  /** Of the cluster: `http://127.0.0.1:8443/v1/clusters/demo`. */
  readonly url: string;
  /** Is told of warnings and errors, each in one line. */
  readonly complain: (text: string) => void;
}

export interface LocalRelay {
  readonly endpoint: ReturnType<typeof connectSigner>;
  readonly stop: () => Promise<void>;
}

export function startRelay(cluster: ClusterConfiguration, { api, url, complain }: LocalRelayOptions): LocalRelay {
  const endpoint = connectSigner({ url, connections: 4 });
  const tell = (fields: object, message: string): void => complain(`relay: ${message} ${JSON.stringify(fields)}`);
  const relay = createRelay(
    {
      signerNames: [...cluster.profiles.keys()],
      policies: policiesOf(cluster),
      concurrency: 4,
      inFlightPerRequester: 4,
      graceMilliseconds: 1_000,
      identity: 'this machine',
    },
    {
      api,
      endpoint,
      clock: systemClock,
      random: Math.random,
      log: { debug: () => {}, info: () => {}, warn: tell, error: tell },
    },
  );
  const stopping = new AbortController();
  const running = relay.run(stopping.signal);
  return {
    endpoint,
    async stop() {
      stopping.abort();
      await running;
      endpoint.close();
    },
  };
}

/** The same policies that the relay reads from countersign.yaml. */
function policiesOf({ profiles, approval }: ClusterConfiguration): RelayOptions['policies'] {
  return new Map(
    [...profiles.values()].map(({ signerName, kind, attestation }) => [
      signerName,
      {
        approval: approval.get(signerName) ?? 'manual',
        kind,
        ...(attestation === undefined ? {} : { attestation }),
      },
    ]),
  );
}
