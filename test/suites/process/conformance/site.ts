/** A sign service of its own on loopback, its handler wrapped, with a key as slow as KMS so that deliveries overlap. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { serveHttp } from '../../../../dev/csr-api/node-http.ts';
import { openSignService } from '../../../../dev/serve/sign-service.ts';
import { tooLarge } from '../../../../adapters/lambda/answers.ts';
import type { Wrap } from './broken-handler.ts';

export interface RunningSite {
  readonly base: string;
  readonly stop: () => Promise<void>;
}

export async function startSite(
  wrap: Wrap = ({ handler }) => handler,
  cluster: ClusterConfiguration = defaultCluster('demo', { maxTtlSeconds: 86_400 }),
): Promise<RunningSite> {
  const service = await openSignService({
    clusters: [cluster],
    log: () => undefined,
    wrapAuthority: slow,
  });
  const http = await serveHttp(wrap({ handler: service.handler, authority: service.authority('demo', 'ca') }), {
    port: 0,
    // The handler's own limit is looked at, not the server's before it.
    maxBodyBytes: 8 * 1_048_576,
    tooLarge: tooLarge(),
    onError: () => undefined,
  });
  return {
    base: `${http.url}/v1/clusters/demo`,
    async stop() {
      await http.close();
      service.close();
    },
  };
}

function slow(authority: Authority): Authority {
  const { signer } = authority;
  return {
    ...authority,
    signer: {
      ...signer,
      async sign(tbs) {
        await pause(20);
        return signer.sign(tbs);
      },
    },
  };
}
