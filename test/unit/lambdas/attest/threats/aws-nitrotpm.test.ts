/**
 * SECURITY.md, "With a NitroTPM", row by row, through the real handlers and the shipped provider, over the strict fakes of STS and EC2.
 * The TPMs are models in memory; test/suites/node/tpm/nitro-join.test.ts has real ones.
 */
import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RefusalCode } from '../../../../../core/outcome/outcome.ts';
import { openSite, requestFor, startAwsPlatform } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, Said } from '../../../../harness/attestation/attested-site.ts';
import { bindingOf, makeNodeEvidence } from '../../../../harness/fake-aws/machine/node-evidence.ts';
import { activateCredential, createAk, createEk, nameOf, quote } from '../../../../harness/tpm/model-tpm.ts';
import type { Ak, Ek } from '../../../../harness/tpm/model-tpm.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import type { TestKey } from '../../../../harness/x509/requests.ts';
import { codesIn, tableUnder } from '../security-page.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws-nitrotpm';
const awsSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const audience = '111122223333/eu-central-1/prod';
const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

interface Tpm {
  readonly ek: Ek;
  readonly ak: Ak;
}
const newTpm = (): Tpm => ({ ek: createEk('RSA-2048'), ak: createAk('P-256') });

let platform: AwsPlatform;
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterAll(() => platform.close());
const opened: AttestedSite[] = [];
afterEach(() => {
  for (const site of opened.splice(0)) site.close();
});

interface Sent {
  /** Of the instance: the node itself. */
  readonly signedBy?: string;
  readonly node?: string;
  readonly key?: TestKey;
  /** The key whose binding digest is signed and quoted, if it is not the one of the request. */
  readonly boundTo?: TestKey;
  readonly clock?: bigint;
  readonly answer?: { readonly challenge: string; readonly by: Tpm };
  readonly data?: object;
}

/** A request that claims the instance, with a quote by the TPM. */
function posted(instanceId: string, tpm: Tpm, sent: Sent = {}): object {
  const { node = 'worker-1', key = newKey('P-256'), boundTo = key, clock = 5_000n } = sent;
  const binding = Buffer.from(bindingOf({ audience, signerName: signer, nodeName: node, spki: boundTo.spki }), 'hex');
  const pcrs = new Map([[7, Buffer.alloc(32, 7)]]);
  const { attest, sig } = quote(tpm.ak, binding, pcrs, { clock });
  const { request } = makeNodeEvidence(platform.aws, instanceId, {
    clusterName: 'prod',
    audience,
    signerName: signer,
    nodeName: node,
    key,
    providerId: `aws:///eu-central-1a/${instanceId}`,
    version: 'aws-nitrotpm/v1',
    presign: { id: `csr-attest/v1/prod/${binding.toString('hex')}` },
    ...(sent.signedBy === undefined ? {} : { signedBy: platform.aws.identityCredential(sent.signedBy) }),
    data: {
      v: 1,
      ekType: 'rsa-2048',
      ak: b64(tpm.ak.area),
      quote: { attest: b64(attest), sig: b64(sig), pcrs: { 7: pcrs.get(7)!.toString('hex') } },
      ...(sent.answer === undefined ? {} : { activation: open(sent.answer, tpm.ak, binding) }),
      ...sent.data,
    },
  });
  return requestFor({ node, signerName: signer, request });
}

/** As a TPM does that has both keys; a TPM that cannot open it has no secret. */
function open({ challenge, by }: NonNullable<Sent['answer']>, ak: Ak, binding: Buffer): object {
  const read = JSON.parse(challenge) as { readonly challenge: string; readonly credential: string };
  const secret = secretOf(by, ak, Buffer.from(read.credential, 'base64'));
  return { challenge: read.challenge, proof: createHmac('sha256', secret).update(binding).digest('base64') };
}

function secretOf({ ek }: Tpm, ak: Ak, credential: Buffer): Buffer {
  try {
    return activateCredential(ek, nameOf(ak.area), credential);
  } catch {
    return Buffer.alloc(32);
  }
}

interface Scene {
  readonly site: AttestedSite;
  /** An instance that may join as worker-1, and its TPM. */
  readonly instanceId: string;
  readonly tpm: Tpm;
  /** What attest says, and sign about the same bytes. */
  readonly ask: (object: object) => Promise<Said & { readonly signed: string }>;
  /** Challenged and answered. */
  readonly join: (by: Tpm, sent?: Sent) => Promise<Said & { readonly signed: string }>;
  readonly challenged: (by: Tpm, sent?: Sent) => Promise<string>;
}

async function scene(more: object = {}): Promise<Scene> {
  const aws = {
    accounts: { '111122223333': {} },
    regions: ['eu-central-1'],
    tags: { 'kubernetes.io/cluster/prod': 'owned' },
    nodeName: ['tag:Name'],
  };
  const profiles = { [signer]: {}, ...more };
  const approval = Object.fromEntries(Object.keys(profiles).map((name) => [name, 'approve']));
  const site = await openSite({
    clusters: { prod: { profiles, approval, attestation: { audience, aws } } },
    aws: platform.ports,
    now: platform.now,
  });
  opened.push(site);
  const tpm = newTpm();
  const { instanceId } = platform.launch('worker-1', { nitroTpm: { 'rsa-2048': tpm.ek.spki } });
  const ask: Scene['ask'] = async (object) => {
    const first = await site.attest(object);
    return { ...first, signed: (await site.sign(object)).said };
  };
  const challenged: Scene['challenged'] = async (by, sent) => {
    const { said, message, annotations = {} } = await site.attest(posted(instanceId, by, sent));
    const challenge = annotations['countersign.dev/attestation-challenge'];
    if (challenge === undefined) throw new Error(`${said}: ${message}`);
    return challenge;
  };
  return {
    site,
    instanceId,
    tpm,
    ask,
    challenged,
    join: async (by, sent = {}) =>
      ask(posted(instanceId, by, { ...sent, answer: { challenge: await challenged(by, sent), by } })),
  };
}

/** Evidence of provider aws, by the same instance. */
function withoutTpm(instanceId: string, signerName: string): object {
  const { request } = makeNodeEvidence(platform.aws, instanceId, {
    clusterName: 'prod',
    audience,
    signerName,
    nodeName: 'worker-1',
    providerId: `aws:///eu-central-1a/${instanceId}`,
  });
  return requestFor({ node: 'worker-1', signerName, request });
}

type Attempt = () => Promise<{ readonly said: string; readonly signed: string }>;

const threats: Readonly<Record<string, { readonly codes: readonly RefusalCode[]; readonly tries: Attempt[] }>> = {
  "use an instance's credentials, which its metadata service gave to another program, without its TPM": {
    codes: ['AttestationChallenge', 'AttestationVersion'],
    tries: [
      async () => {
        const { ask, instanceId } = await scene();
        return ask(posted(instanceId, newTpm()));
      },
      async () => {
        const { ask, instanceId } = await scene();
        return ask(withoutTpm(instanceId, signer));
      },
    ],
  },
  'offer a TPM in software, or that of another instance, as that of the node (a cuckoo)': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => (await scene()).join(newTpm()),
      async () => {
        const { join } = await scene();
        const own = newTpm();
        platform.launch('worker-2', { nitroTpm: { 'rsa-2048': own.ek.spki } });
        return join(own);
      },
    ],
  },
  'claim the instance of a node with the credentials and the TPM of their own': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, instanceId } = await scene();
        const own = newTpm();
        const { instanceId: signedBy } = platform.launch('worker-2', { nitroTpm: { 'rsa-2048': own.ek.spki } });
        return ask(posted(instanceId, own, { signedBy }));
      },
    ],
  },
  'name the endorsement key in the request, or send a copied identity document': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, instanceId } = await scene();
        const own = newTpm();
        return ask(posted(instanceId, own, { data: { ek: { spki: b64(own.ek.spki) } } }));
      },
      async () => {
        const { ask, instanceId, tpm } = await scene();
        return ask(posted(instanceId, tpm, { data: { rsa2048: platform.aws.rsa2048(instanceId) } }));
      },
    ],
  },
  'stand between the node and attest, and put a key of theirs into its request': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, challenged, instanceId, tpm } = await scene();
        const shown = newKey('P-256');
        const answer = { challenge: await challenged(tpm, { key: shown }), by: tpm };
        return ask(posted(instanceId, tpm, { boundTo: shown, answer }));
      },
    ],
  },
  'use an instance without a NitroTPM': {
    codes: ['IdentityNotAllowed'],
    tries: [
      async () => {
        const { ask } = await scene();
        return ask(posted(platform.launch('worker-1').instanceId, newTpm()));
      },
    ],
  },
  'send the evidence of `aws` for an instance that is on record with its TPM': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, instanceId, join, tpm } = await scene({ [awsSigner]: {} });
        expect((await join(tpm)).signed).toBe('issued');
        return ask(withoutTpm(instanceId, awsSigner));
      },
    ],
  },
  'replay a quote': {
    codes: ['AttestationInvalid'],
    tries: [
      async () => {
        const { ask, instanceId, join, tpm } = await scene();
        await join(tpm);
        return ask(posted(instanceId, tpm, { clock: 4_999n }));
      },
    ],
  },
};

describe.each(Object.entries(threats))('an attacker who can %s', (_, { codes, tries }) => {
  test('gets nothing but this', async () => {
    const signed: string[] = [];
    for (const attempt of tries) {
      const answer = await attempt();
      expect(answer.said).toBe(answer.signed);
      signed.push(answer.signed);
    }
    expect([...new Set(signed)].toSorted()).toEqual([...codes].toSorted());
  });
});

test('the instance itself joins, renews and is signed for, as the one machine that it is for aws too', async () => {
  const { ask, instanceId, join, site, tpm } = await scene();
  const joined = await join(tpm);
  expect(joined.signed).toBe('issued');
  expect(joined.annotations).toMatchObject({
    'cluster-x-k8s-io/tpm-endorsement-key': b64(tpm.ek.spki),
    'countersign.dev/identity': `aws#aws/111122223333/eu-central-1/${instanceId}`,
  });
  expect((await ask(posted(instanceId, tpm, { clock: 6_000n }))).signed).toBe('issued');
  const record = await site.store.findIdentity(`aws#aws/111122223333/eu-central-1/${instanceId}`);
  expect(record).toMatchObject({ nodeName: 'worker-1', renewals: 1, device: { resetCount: 3, clock: 6_000 } });
});

test('an instance on record by aws adds its TPM with a challenge, and keeps its record', async () => {
  const { ask, instanceId, join, site, tpm } = await scene({ [awsSigner]: {} });
  expect((await ask(withoutTpm(instanceId, awsSigner))).signed).toBe('issued');
  expect((await join(tpm)).signed).toBe('issued');
  const record = await site.store.findIdentity(`aws#aws/111122223333/eu-central-1/${instanceId}`);
  expect(record).toMatchObject({ renewals: 1, device: { clock: 5_000 } });
});

test('EC2 is asked for the key with every request, and an outage is no answer', async () => {
  const { instanceId, join, site, tpm } = await scene();
  const before = platform.ec2.calls.length;
  await join(tpm);
  expect(platform.ec2.calls.slice(before).map(({ action }) => action)).toEqual([
    'DescribeInstances',
    'GetInstanceTpmEkPub',
    'DescribeInstances',
    'GetInstanceTpmEkPub',
  ]);
  platform.ec2.fail(503, 'RequestLimitExceeded', 'slow down');
  expect((await site.attest(posted(instanceId, tpm, { clock: 6_000n }))).said).toBe('busy');
  platform.ec2.mend();
  expect((await site.attest(posted(instanceId, tpm, { clock: 6_000n }))).said).toBe('approve');
});

test('SECURITY.md has the same rows, each with its codes', () => {
  const page = tableUnder('### With a NitroTPM').map(([threat = '', , codes = '']) => [threat, codesIn(codes)]);
  expect(page).toEqual(Object.entries(threats).map(([threat, { codes }]) => [threat, codes]));
});
