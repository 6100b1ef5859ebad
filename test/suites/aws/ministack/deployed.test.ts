/** The whole way in an AWS that checks who calls: the relay assumes the caller role, and the HTTP API lets only that in. */
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { describe, expect, test } from 'vitest';
import { httpClient } from '../../../conformance/http-client.ts';
import { signAws } from '../../../conformance/sigv4.ts';
import { startCountedMiniStack } from '../../../harness/aws/kms-counter.ts';
import { deployOnMiniStack, synthesiseClusters } from '../../../harness/aws/ministack-deployment.ts';
import { readRequest } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import {
  defineCounting,
  postAgain,
  readTrustBundle,
  type CountedSigner,
} from '../../control-plane/end-to-end/kms-counting.ts';
import { describeSigning } from '../../control-plane/end-to-end/signing-suite.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'ministack');

describeSigning({
  by: 'the stacks in MiniStack, for a relay that assumes the caller role',
  skip,
  start: startSigner,
  // Each call at once is a process of its own here.
  relayArgs: ['--concurrency', '4'],
  more(world) {
    describe('KMS', () => {
      defineCounting(world);
    });

    test('the ca function issues a CRL with the rights of its role, and the relay’s role may read it', async () => {
      const { signer } = world();
      expect(await signer.issueCrls()).toMatchObject({
        cluster: 'demo',
        crls: [{ name: 'ca', issued: true, number: 1 }],
      });
      // It reads the CRL before, and the index of revocations, and finds nothing to do.
      expect(await signer.issueCrls()).toMatchObject({ crls: [{ ok: true, issued: false, number: 1 }] });
      const get = (path: string) =>
        signer.fetch(`${signer.url}/v1/clusters/demo/${path}`, {
          method: 'GET',
          headers: {},
          signal: AbortSignal.timeout(60_000),
          redirect: 'manual',
        });
      const crl = await get('crl/ca');
      expect([crl.status, crl.headers.get('content-type')]).toEqual([200, 'application/pkix-crl']);
      expect((await get('revoked')).status).toBe(200);
    });

    test('a caller that has not assumed that role is refused at the same door', async () => {
      const { plane, signer } = world();
      const alice = await readRequest(plane, 'alice');
      expect((await postAgain(signer, alice)).status).toBe(200);
      expect((await postAgain({ ...signer, fetch: signer.fetchUnsigned }, alice)).status).toBe(403);
    });
  },
});

async function startSigner() {
  const counted = await startCountedMiniStack();
  const { client, port, url: aws } = counted.emulator;
  const deployment = await deployOnMiniStack(synthesiseClusters({ demo: {} }), { emulator: counted.emulator });
  const { SignUrl: signUrl = '', CallerRoleArn: callerRole = '' } = deployment.outputs['demo'] ?? {};
  // For names under localhost, the relay needs no resolver; neither do these.
  const connect = { host: '127.0.0.1', port };
  const credentials = await deployment.caller('demo');
  const signed = httpClient({ connect, authorize: signAws({ region: client.region, credentials }) });
  const unsigned = httpClient({ connect });
  // What a pod gets with an IAM role for its service account, short of the exchange of its token.
  const base = await deployment.relay('demo');
  const url = new URL(signUrl).origin;
  const lambda = new LambdaClient(client);
  const signer: CountedSigner & {
    readonly fetchUnsigned: typeof unsigned.fetch;
    readonly issueCrls: () => Promise<unknown>;
  } = {
    async issueCrls() {
      const Payload = JSON.stringify({ action: 'crl' });
      const answer = await lambda.send(new InvokeCommand({ FunctionName: 'countersign-demo-ca', Payload }));
      return JSON.parse(Buffer.from(answer.Payload ?? []).toString('utf8')) as unknown;
    },
    url,
    caPem: () => readTrustBundle({ url, fetch: signed.fetch }),
    kms: counted.kms,
    relayEnvironment: {
      COUNTERSIGN_CALLER_ROLE: callerRole,
      AWS_ENDPOINT_URL_STS: aws,
      AWS_REGION: client.region,
      AWS_ACCESS_KEY_ID: base.accessKeyId,
      AWS_SECRET_ACCESS_KEY: base.secretAccessKey,
      AWS_SESSION_TOKEN: base.sessionToken,
    },
    fetch: signed.fetch,
    fetchUnsigned: unsigned.fetch,
    async stop() {
      lambda.destroy();
      signed.close();
      unsigned.close();
      await counted.stop();
    },
  };
  return signer;
}
