import { createHash, createHmac, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ulid } from '../../../../core/attestation/records/ulid.ts';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { postNodeRequest } from '../../../harness/stack/approval.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { bindingOf, makeNodeRequest, withEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { certificatePemOf, readRequest } from '../../../harness/stack/requests.ts';
import { activateCredential, createAk, createEk, nameOf, quote } from '../../../harness/tpm/model-tpm.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { callsOf } from './budget.ts';
import { startCountedWorld, type CountedWorld } from './counted-world.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'ministack');

const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const serving = 'kubernetes.io/kubelet-serving';
const audience = 'counted';
const configuration = {
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'counted CA' } } },
      profiles: { [signerName]: {}, [serving]: { attestation: { providers: ['tpm'] } } },
      approval: { [signerName]: 'approve', [serving]: 'approve' },
      attestation: { audience, tpm: { machines: 'listed' } },
    },
  },
};

const [ek, ak] = [createEk('P-256'), createAk('P-256')];
const identity = `tpm#${createHash('sha256').update(ek.spki).digest('hex')}`;
const address = '192.0.2.7';
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
const pcrs = new Map([0, 1, 2, 3, 4, 5, 6, 7].map((pcr) => [pcr, Buffer.alloc(32, pcr)]));

interface Challenge {
  readonly challenge: string;
  readonly credential: string;
}

let clock = 1_000n;
/** A whole spec.request: the CSR, and what the TPM of the machine `n1` says about it. */
function requestOf(challenge?: Challenge) {
  const key = newKey('P-256');
  const csr = makeNodeRequest('n1', key, { providerId: identity.replace('tpm#', 'tpm:///') });
  const binding = Buffer.from(bindingOf({ audience, signerName, nodeName: 'n1', spki: key.spki }), 'hex');
  const { attest, sig } = quote(ak, binding, pcrs, { clock: (clock += 1_000n) });
  const activation =
    challenge === undefined
      ? undefined
      : {
          challenge: challenge.challenge,
          proof: base64(createHmac('sha256', secretOf(challenge)).update(binding).digest()),
        };
  const values = Object.fromEntries([...pcrs].map(([pcr, value]) => [pcr, value.toString('hex')]));
  const data = {
    v: 1,
    ek: { spki: base64(ek.spki) },
    ak: base64(ak.area),
    quote: { attest: base64(attest), sig: base64(sig), pcrs: values },
    ...(activation === undefined ? {} : { activation }),
  };
  return { pem: withEvidence(csr.pem, 'tpm/v1', JSON.stringify(data)), keyPem: csr.keyPem };
}

function secretOf({ credential }: Challenge): Buffer {
  return activateCredential(ek, nameOf(ak.area), Buffer.from(credential, 'base64'));
}

/** The same where a TPM proves the machine: the list of machines and the challenge key are counted too. */
describe.skipIf(skip)('calls for a certificate of a machine with a TPM', () => {
  let emulator: Emulator;
  let world: CountedWorld;
  let token: ApiClient;
  let node: ApiClient;
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: false });
    world = await startCountedWorld(emulator, configuration);
    token = await world.stack.bootstrap('abcdef');
    const at = Date.now();
    const entry = {
      name: identity,
      nodeName: 'n1',
      addresses: [address],
      dnsNames: [],
      addedAt: at,
      by: 'suite',
      reason: 'rack 1',
    };
    const id = ulid(at, randomBytes(10));
    await world
      .register()
      .allowMachine(entry, { id, at, by: 'suite', action: 'allow', subject: identity, reason: 'rack 1' });
  });
  afterAll(async () => {
    node?.close();
    await world?.stop();
    await emulator?.stop();
  });

  const post = (client: ApiClient, name: string, pem: string) =>
    postNodeRequest(client, name, 'unused', { signerName, pem });

  test('it joins in two requests, the second of which answers the challenge of the first, and renews with a quote', async () => {
    const start = async () => void (await world.relay('--leader-elect'));
    expect(await world.during(start)).toEqual(callsOf(['start', 2]));
    const first = async () => {
      await post(token, 'asks', requestOf().pem);
      await world.reaches('asks', 'Denied');
    };
    expect(await world.during(first)).toEqual(callsOf('challenged'));
    const { annotations = {} } = (await readRequest(world.stack.plane, 'asks')).metadata as {
      readonly annotations?: Readonly<Record<string, string>>;
    };
    const challenge = JSON.parse(annotations['countersign.dev/attestation-challenge'] ?? '') as Challenge;

    const answer = requestOf(challenge);
    const join = async () => {
      await post(token, 'answers', answer.pem);
      await world.reaches('answers', 'Approved, issued');
    };
    expect(await world.during(join)).toEqual(callsOf('activated'));
    const certificatePem = certificatePemOf(await readRequest(world.stack.plane, 'answers'));
    node = await world.stack.plane.client({ certificatePem, keyPem: answer.keyPem });

    const renew = async () => {
      await post(node, 'renews', requestOf().pem);
      await world.reaches('renews', 'Approved, issued');
    };
    expect(await world.during(renew)).toEqual(callsOf('quoted'));
  });

  test('its stock kubelet asks for a serving certificate', async () => {
    const serve = async () => {
      await postNodeRequest(node, 'serves', 'n1', {
        signerName: serving,
        usage: 'server auth',
        spec: { sans: { ip: [address] } },
      });
      await world.reaches('serves', 'Approved, issued');
    };
    expect(await world.during(serve)).toEqual(callsOf('listedServing'));
  });
});
