/**
 * SECURITY.md, "On a VM of Google", row by row, through the real handlers and the shipped provider `gce`. The test stands in for what
 * Google answers; test/unit/adapters/google and the end-to-end suite have the calls.
 */
import { afterEach, expect, test } from 'vitest';
import { bindingDigest } from '../../../../../core/attestation/evidence/binding-digest.ts';
import { evidenceLabels } from '../../../../../core/attestation/evidence/evidence.ts';
import type { VmDescription } from '../../../../../core/attestation/google/compute.ts';
import * as world from '../../../../corpus/attestation/gce/machine.ts';
import { openSite, requestFor } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, CertificateSigningRequest } from '../../../../harness/attestation/attested-site.ts';
import { claimsOf, jwkOf, writeToken } from '../../../../harness/fake-google/identity-token.ts';
import type { Claims, TokenVm } from '../../../../harness/fake-google/identity-token.ts';
import * as der from '../../../../harness/x509/der-writer.ts';
import { makeRequest, newKey, pemBlock } from '../../../../harness/x509/requests.ts';
import type { TestKey } from '../../../../harness/x509/requests.ts';
import { askBoth, describeThreats } from './rows.ts';
import type { Asked, Threat } from './rows.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-gce';
const audience = 'google/prod';
const now = Date.now();

interface Sent {
  readonly vm?: Partial<TokenVm>;
  readonly key?: typeof world.keys.google;
  readonly header?: Claims;
  readonly requestKey?: TestKey;
  /** Whose binding digest is the audience, if it is not the one of this request. */
  readonly boundTo?: TestKey;
  readonly audience?: string;
  readonly madeAt?: number;
}

function posted(sent: Sent = {}): CertificateSigningRequest {
  const { requestKey = newKey('P-256'), boundTo = requestKey, key = world.keys.google, header = {} } = sent;
  const vm = { ...world.vm, ...sent.vm };
  const bound = { audience, signerName: signer, nodeName: vm.name, nonce: world.nonce, spki: boundTo.spki };
  const claims = claimsOf(vm, sent.audience ?? world.audience(bindingDigest(bound)), sent.madeAt ?? now);
  const evidence = { v: 1, token: writeToken({ claims, key, header }), nonce: world.nonce };
  const providerId = `gce://${vm.projectId}/${vm.zone}/${vm.name}`;
  const csr = makeRequest({
    key: requestKey,
    subject: { O: ['system:nodes'], CN: `system:node:${vm.name}` },
    extensions: [{ oid: '1.3.6.1.4.1.11129.2.1.21', value: der.utf8(providerId) }],
  });
  const blocks = [
    pemBlock(evidenceLabels.provider, Buffer.from('gce/v1')),
    pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify(evidence))),
  ];
  return requestFor({ node: vm.name, signerName: signer, request: csr.pem + blocks.join('') });
}

const opened: AttestedSite[] = [];
afterEach(() => {
  for (const site of opened.splice(0)) site.close();
});

/** `changed`: what Google says of every VM. */
async function scene(
  changed: Partial<VmDescription> | 'notFound' = {},
): Promise<(object: CertificateSigningRequest) => Promise<Asked>> {
  const refuse = () => Promise.reject(new Error('no AWS'));
  const { projects, labels, federation } = world.policy;
  const site = await openSite({
    clusters: {
      prod: {
        profiles: { [signer]: {} },
        approval: { [signer]: 'approve' },
        attestation: { audience, gce: { projects, labels, federation } },
      },
    },
    aws: { sts: refuse, ec2: { describeInstance: refuse }, regionCertificates: new Map() },
    compute: () => ({
      describeInstance: ({ zone, instanceId }) =>
        Promise.resolve(changed === 'notFound' ? changed : { ...world.described, zone, instanceId, ...changed }),
      signingKey: refuse,
    }),
    googleKeySet: () => Promise.resolve(world.keySet),
    now: () => now,
  });
  opened.push(site);
  return (object) => askBoth(site, object);
}

const tried =
  (sent: Sent, changed: Parameters<typeof scene>[0] = {}) =>
  async () =>
    (await scene(changed))(posted(sent));

const threats: Readonly<Record<string, Threat>> = {
  'own a project of Google, and so genuine tokens': {
    codes: ['IdentityNotAllowed'],
    tries: [tried({ vm: { projectNumber: '4242', projectId: 'theirs' } }), tried({ vm: { projectNumber: '4242' } })],
  },
  'sign tokens with a key of their own, under the name of a key of Google, or bring the key along': {
    codes: ['AttestationInvalid'],
    tries: [
      tried({ key: world.keys.attacker }),
      tried({ key: world.keys.unknown }),
      tried({ key: world.keys.attacker, header: { jwk: jwkOf(world.keys.attacker) } }),
      tried({ key: world.keys.attacker, header: { jku: 'https://www.googleapis.com.evil.example/certs' } }),
    ],
  },
  'copy a token from a request, or get one that the VM made for another service': {
    codes: ['AttestationInvalid'],
    tries: [tried({ boundTo: newKey('P-256') }), tried({ audience: 'https://vault.example' })],
  },
  'keep a token for later': { codes: ['AttestationInvalid'], tries: [tried({ madeAt: now - 5 * 60_000 })] },
  'use the token of a VM that was stopped or deleted': {
    codes: ['IdentityNotAllowed'],
    tries: [tried({}, { status: 'TERMINATED' }), tried({}, 'notFound')],
  },
  'start a VM in the project': { codes: ['IdentityNotAllowed'], tries: [tried({}, { labels: new Map() })] },
  'start a VM that has the name of a node, in another zone': {
    codes: ['TofuNodeTaken'],
    tries: [
      async () => {
        const ask = await scene();
        await ask(posted());
        return ask(posted({ vm: { zone: 'europe-west3-c', id: '42' } }));
      },
    ],
  },
  'reach the metadata server of a VM that has joined, and hold a bootstrap token': {
    codes: ['TofuReuse'],
    tries: [
      async () => {
        const ask = await scene();
        await ask(posted());
        return ask(posted());
      },
    ],
  },
  'do so before the VM joins': { codes: ['issued'], tries: [tried({})] },
};

describeThreats('### On a VM of Google', threats);

test('another VM joins beside it', async () => {
  const ask = await scene({ name: 'worker-2' });
  expect((await ask(posted({ vm: { name: 'worker-2', id: '42' } }))).signed).toBe('issued');
});
