/** Requests of the real gke-exec-auth-plugin at the webhook's door, as gcp-controller-manager posts them. No call of Google or AWS. */
import { X509Certificate } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { objectOf, realVm, requests, signingKey } from '../../../../corpus/attestation/gce-vtpm/real-requests.ts';
import { openSite, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite } from '../../../../harness/attestation/attested-site.ts';

const noAws = {
  sts: () => Promise.reject(new Error('no test asks AWS')),
  ec2: { describeInstance: () => Promise.reject(new Error('no test asks AWS')) },
  regionCertificates: new Map(),
};

const sites: AttestedSite[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.close();
});

async function open(cluster: Readonly<Record<string, unknown>>): Promise<AttestedSite> {
  const site = await openSite({ clusters: { prod: cluster }, aws: noAws, now: () => Date.now() });
  sites.push(site);
  return site;
}

const attested = { attestation: { providers: ['gce-vtpm'] } };
const profiles = { [signers.client]: attested, [signers.serving]: attested };
const instances = [{ project: '2', zone: realVm.zone, id: '7', name: 'vm', signingKey }];
const real = { profiles, attestation: { 'gce-vtpm': { projects: { '2': 'p0' }, instances } } };
const [first, second] = [objectOf(requests['with-aik-cert']), objectOf(requests['leading-zero-x'])];

test.each([
  ['with an attestation certificate', first],
  ['with a coordinate that begins with zero', second],
])('%s: signed', async (_, object) => {
  const site = await open(real);
  const said = await site.sign(object);
  expect(said.said).toBe('issued');
  const certificate = new X509Certificate(said.certificatePem ?? '');
  expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:vm');
  expect(await site.store.findNode('vm')).toMatchObject({
    identity: 'gce-vtpm#2/us-central1-c/7',
    providerId: 'gce://p0/us-central1-c/vm',
  });
  // Delivered again: the same certificate.
  expect((await site.sign(object)).certificatePem).toBe(said.certificatePem);
});

test('the evidence proves no time, so a second key of the VM is refused until an operator resets it', async () => {
  const site = await open(real);
  expect((await site.sign(first)).said).toBe('issued');
  expect((await site.sign(second)).said).toBe('TofuReuse');
  const record = await site.store.findNode('vm');
  if (record === undefined) throw new Error('no record');
  const audit = {
    id: '0'.repeat(26),
    at: 1,
    by: 'me',
    action: 'reset',
    subject: record.identity,
    reason: 'new disk',
  } as const;
  expect(await site.register.reset(record, audit)).toEqual({ kind: 'written' });
  const again = { ...second, metadata: { ...second.metadata, uid: 'another-uid' } };
  expect((await site.sign(again)).said).toBe('issued');
});

test('with newKeys: attested the clock of the vTPM decides: later keys are accepted, earlier ones never again', async () => {
  const site = await open({
    profiles,
    attestation: { 'gce-vtpm': { projects: { '2': 'p0' }, instances, newKeys: 'attested' } },
  });
  expect((await site.sign(first)).said).toBe('issued');
  expect((await site.sign(second)).said).toBe('issued');
  const replayed = { ...first, metadata: { ...first.metadata, uid: 'another-uid' } };
  const said = await site.sign(replayed);
  expect([said.said, said.message]).toEqual([
    'AttestationInvalid',
    'the clock of the TPM is before that of its last use',
  ]);
});

test('in a profile that does not take such blocks: malformed', async () => {
  const site = await open({ profiles: { [signers.client]: {} } });
  expect((await site.sign(first)).said).toBe('RequestMalformed');
});

test('in a profile without attestation that takes them: signed, if they are right', async () => {
  const site = await open({ profiles: { [signers.client]: { requestBlocks: 'gce-vtpm' } } });
  expect((await site.sign(first)).said).toBe('issued');
  expect((await site.sign(second)).said).toBe('issued');
  const mixed = requests['with-aik-cert'].text.replace(
    /-----BEGIN ATTESTATION DATA[^]*END ATTESTATION DATA-----\n/,
    /-----BEGIN ATTESTATION DATA[^]*END ATTESTATION DATA-----\n/.exec(requests['leading-zero-x'].text)?.[0] ?? '',
  );
  expect(
    (await site.sign(objectOf({ ...requests['with-aik-cert'], metadata: { name: 'x', uid: 'u' }, text: mixed }))).said,
  ).toBe('AttestationInvalid');
});

test('such a profile takes requests without blocks too, and refuses what is no request', async () => {
  const site = await open({ profiles: { [signers.client]: { requestBlocks: 'gce-vtpm' } } });
  const plain = requestFor({ node: 'node-1' });
  expect((await site.sign(plain)).said).toBe('issued');
  const cut = { ...requests['with-aik-cert'], metadata: { name: 'x', uid: 'u' }, text: 'no PEM' };
  expect((await site.sign(objectOf(cut))).said).toBe('RequestMalformed');
});
