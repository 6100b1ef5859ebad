/** The client of `GET …/trust-bundles`: the CA certificates that verifiers of each signer need. */
import { decodeTrustBundles } from '../../core/trust/trust-bundles.ts';
import type { EndpointConnection } from './client.ts';
import { getDocument } from './get.ts';

export interface TrustSource {
  /** PEM by signer; never empty text. Throws if there is no usable answer in time. */
  read(signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
}

const timeoutMilliseconds = 15_000;

export function trustSource(connection: EndpointConnection, cluster: string): TrustSource {
  return {
    async read(signal) {
      const { status, headers, body } = await getDocument(connection, { timeoutMilliseconds, signal });
      if (status !== 200) throw new Error(`the endpoint answered ${status}`);
      // A proxy can answer 200 for the endpoint.
      if (headers['x-countersign-outcome'] !== 'ok') throw new Error('not an answer of countersign');
      const bundles = decodeTrustBundles(body, cluster);
      if (!bundles.ok) throw new Error(`the answer of the endpoint cannot be used: it ${bundles.problem}`);
      return bundles.value;
    },
  };
}
