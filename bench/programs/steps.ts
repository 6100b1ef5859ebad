/** Each step of issuing one certificate by itself, in this process, one step after the other. */
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import type { AttestationProvider, Evidence } from '../../core/attestation/evidence/provider.ts';
import { gceProvider } from '../../core/attestation/gce/provider.ts';
import type { GcePorts } from '../../core/attestation/gce/provider.ts';
import { gceVtpmProvider } from '../../core/attestation/gce-vtpm/provider.ts';
import { awsNitroTpmProvider } from '../../core/attestation/aws-nitrotpm/provider.ts';
import { tpmProvider } from '../../core/attestation/tpm/provider.ts';
import { x509Provider } from '../../core/attestation/x509/provider.ts';
import { embeddedSigner } from '../../adapters/embedded/signer.ts';
import { checkCertificate } from '../../core/x509/check-issued.ts';
import { assembleCertificate, buildTbs, issuerOf } from '../../core/x509/leaf-certificate.ts';
import type { Authority, LeafTemplate } from '../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../core/configuration/parse.ts';
import { decodeRequest } from '../../core/x509/certificate-request.ts';
import { issue } from '../../core/issue.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { serialFrom, validity } from '../../core/x509/validity.ts';
import type { LockReader } from '../../core/ports/locks.ts';
import type { CertificateLedger } from '../../core/ports/certificate-ledger.ts';
import type { CrlEntry } from '../../core/revocation/crl.ts';
import { issueCrl } from '../../core/revocation/issue-crl.ts';
import { checkProfile } from '../../core/policy/check-profile.ts';
import { requestDigest } from '../../core/kubernetes/request-digest.ts';
import { certificateProblem } from '../../lambdas/watch-relay/objects/check-relayed-certificate.ts';
import { dataOf as gceDataOf, evidenceOf as gceEvidenceOf } from '../../test/corpus/attestation/gce/judge.ts';
import * as gce from '../../test/corpus/attestation/gce/machine.ts';
import { pinned, policy as gceVtpmPolicy } from '../../test/corpus/attestation/gce-vtpm/provider-cases.ts';
import { vmRequest } from '../../test/corpus/attestation/gce-vtpm/vm.ts';
import { dataOf as nitroTpmDataOf, judge as judgeNitroTpm } from '../../test/corpus/attestation/aws-nitrotpm/judge.ts';
import { cas } from '../../test/corpus/attestation/tpm/machine.ts';
import { judge } from '../../test/corpus/attestation/tpm/judge.ts';
import type { Case, ProviderOf } from '../../test/corpus/attestation/tpm/judge.ts';
import { dataOf as x509DataOf, evidenceOf as x509EvidenceOf } from '../../test/corpus/attestation/x509/judge.ts';
import * as x509 from '../../test/corpus/attestation/x509/machine.ts';
import { temporaryFolder } from '../../test/harness/processes/processes.ts';
import { createTestAuthority } from '../../test/harness/x509/test-certificates.ts';
import { ordinaryRequest, worstCluster, worstRequest } from '../../test/harness/x509/worst-request.ts';
import { kubeletRequest, requestObject, signerName } from '../requests/requests.ts';

export interface StepResult {
  readonly step: string;
  /** By elapsed time. */
  readonly perSecond: number;
  /** CPU time of all threads for one run, which other work on the machine hardly changes. */
  readonly cpuMicroseconds: number;
}

/** Rounds per step; the best one counts, because other work can only make a round slower. */
const rounds = 5;
/** The clock is read after this many runs. */
const batch = 10;

export async function measureSteps(roundMilliseconds: number): Promise<StepResult[]> {
  const folder = temporaryFolder('bench-steps');
  const memory = openEmbeddedLedger(':memory:');
  const disk = openEmbeddedLedger(join(folder.path, 'ledger.sqlite'));
  const locks = openEmbeddedAttestations(join(folder.path, 'attestations.sqlite'));
  try {
    const results: StepResult[] = [];
    for (const [step, run] of await steps(memory.ledger, disk.ledger, locks.store))
      results.push(await measureStep(step, run, roundMilliseconds));
    return results;
  } finally {
    memory.close();
    disk.close();
    locks.close();
    folder.remove();
  }
}

type Step = readonly [name: string, run: () => unknown];

/** A kubelet's request with a P-256 key, and a CA with a P-256 key in this process's memory. */
async function steps(memory: CertificateLedger, disk: CertificateLedger, locks: LockReader): Promise<readonly Step[]> {
  const authority = await benchAuthority();
  const { signer } = authority;
  const cluster = defaultCluster('bench', { maxTtlSeconds: 86_400 });
  const profile = cluster.profiles.get(signerName)!;
  const text = JSON.stringify(approvedObject());
  const object = decodeObject(text);
  const decoded = decodeRequest(object.request);
  if (!decoded.ok) throw new Error('the sample request cannot be decoded');
  const request = decoded.value;
  const template = templateOf(object, request, profile.maxTtlSeconds, authority);
  const tbs = buildTbs(template, authority);
  const { bytes: signature } = await signer.sign(tbs);

  const issueWith = async (ledger: CertificateLedger, delivered: RequestObject): Promise<string> => {
    const ports = { ledger, locks, authority: async () => authority, now: () => Date.now(), randomBytes };
    const outcome = await issue(delivered, cluster, ports);
    if (outcome.kind !== 'issued') throw new Error(`the sample request was ${outcome.kind}`);
    return outcome.certificatePem;
  };
  const withNewUid = (): RequestObject => ({ ...object, uid: randomUUID() });
  const certificatePem = await issueWith(memory, object);

  // A profile with as many patterns as a profile may have, and requests that are compared with all of them.
  const strict = worstCluster();
  const checkAndIssue = async (text: string, expected: 'issued' | 'refused'): Promise<void> => {
    const delivered = { ...decodeObject(text), uid: randomUUID() };
    const ports = { ledger: memory, locks, authority: async () => authority, now: () => Date.now(), randomBytes };
    const { kind } = await issue(delivered, strict, ports);
    if (kind !== expected) throw new Error(`the request was ${kind}`);
  };
  const ordinary = JSON.stringify(ordinaryRequest());
  const worst = JSON.stringify(worstRequest());
  const manyNames = JSON.stringify(worstRequest({ attributes: 2, groups: 2, addresses: 9_500 }));

  const crl = {
    number: 1,
    thisUpdate: Date.now(),
    nextUpdate: Date.now() + 7 * 86_400_000,
    entries: Array.from({ length: 10_000 }, () => revokedEntry()),
  };

  const nitroTpmData = nitroTpmDataOf({});

  return [
    ['JSON.parse + decodeRequestObject', () => decodeObject(text)],
    ['decodeRequest, with the self-signature verified', () => decodeRequest(object.request)],
    ['checkProfile', () => checkProfile(profile, object, request)],
    ['requestDigest', () => requestDigest('bench', object, signerName)],
    ['buildTbs', () => buildTbs(template, authority)],
    ['sign, embedded P-256 key', () => signer.sign(tbs)],
    [
      'assembleCertificate + checkCertificate',
      () => checkCertificate(assembleCertificate(tbs, signature, signer.algorithm), tbs, authority, request),
    ],
    ['issue(), ledger in memory', () => issueWith(memory, withNewUid())],
    ['issue(), ledger on disk, each write synced', () => issueWith(disk, withNewUid())],
    ['issue(), delivered again', () => issueWith(memory, object)],
    ['issue(), 256 patterns in each list, an ordinary request', () => checkAndIssue(ordinary, 'issued')],
    ['issue(), 256 patterns in each list, the worst allowed request', () => checkAndIssue(worst, 'issued')],
    ['issue(), 9 500 names: refused', () => checkAndIssue(manyNames, 'refused')],
    ['attest: tpm/v1, a listed machine', () => proveTpm(tpmProvider, { entry: {}, policy: listed })],
    [
      'attest: tpm/v1, a certificate under an intermediate and a root',
      () => proveTpm(tpmProvider, { policy: underRoot }),
    ],
    ['attest: x509/v1, a certificate under an intermediate and a root', proof(x509Provider(x509.policy), x509Evidence)],
    // On AWS each of these also costs a call of the Compute API, and gce-vtpm two.
    ["attest: gce/v1, Google's keys in memory", proof(gceProvider(gce.policy, google), gceEvidence)],
    ['attest: gce-vtpm/v1, a VM of the list', proof(gceVtpmProvider(listedVms, undefined), vmEvidence())],
    ['attest: aws-nitrotpm/v1, an EC2 instance', () => proveNitroTpm(nitroTpmData)],
    ['issueCrl(), 10 000 revoked certificates', () => issueCrl(crl, authority)],
    ['relay: certificateProblem', () => certificateProblem(certificatePem, object.request)],
  ];
}

function revokedEntry(): CrlEntry {
  return { serial: Buffer.from(serialFrom(randomBytes(16))).toString('hex'), at: Date.now(), reason: 'superseded' };
}

/** On AWS each also costs a read of the list, and a first use two calls of KMS. */
const listed: NonNullable<Case['policy']> = { roots: [], intermediates: [], machines: 'listed' };
const underRoot: NonNullable<Case['policy']> = { roots: [cas.root.pem], intermediates: [cas.maker.pem] };

async function proveTpm(provider: ProviderOf, more: Omit<Case, 'name' | 'expect'> = {}): Promise<void> {
  const { outcome } = await judge(provider, { name: 'bench', expect: 'accepted', ...more });
  if (outcome !== 'accepted') throw new Error(outcome);
}

const x509Evidence = x509EvidenceOf(x509DataOf({}));
const gceEvidence = gceEvidenceOf(gceDataOf({}));
const google: GcePorts = {
  keySet: () => Promise.resolve(gce.keySet),
  compute: {
    describeInstance: () => Promise.resolve(gce.described),
    signingKey: () => Promise.reject(new Error('no key is asked for')),
  },
};
const listedVms = { ...gceVtpmPolicy, instances: [pinned] };

function vmEvidence(): Evidence {
  const request = decodeRequest(Buffer.from(vmRequest()), 'gce-vtpm');
  if (!request.ok) throw new Error('the request of the plugin is malformed');
  const about = { version: 'gce-vtpm/v1', data: new Uint8Array(), clusterName: 'bench', binding: () => '', now: 0 };
  return { ...about, request: request.value, nodeName: pinned.name };
}

/** The evidence is the same each time: the once-key and the records are not the provider's. */
function proof(provider: AttestationProvider, evidence: Evidence): () => Promise<void> {
  return async () => {
    const examined = await provider.examine(evidence);
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (!answer.ok) throw new Error(answer.problem[0].message);
  };
}

/** With the answers of STS and EC2 in memory; STS’s is by a fake that verifies the signature. */
async function proveNitroTpm(data: Uint8Array): Promise<void> {
  const { outcome } = await judgeNitroTpm(awsNitroTpmProvider, { name: 'bench' }, data);
  if (outcome !== 'accepted') throw new Error(outcome);
}

async function measureStep(step: string, run: () => unknown, roundMilliseconds: number): Promise<StepResult> {
  const wall: number[] = [];
  const cpu: number[] = [];
  // One more round, since the compiler is still at work in the first.
  for (let round = 0; round <= rounds; round++) {
    const begin = performance.now();
    const cpuBegin = process.cpuUsage();
    let runs = 0;
    let elapsed = 0;
    while (elapsed < roundMilliseconds) {
      for (let i = 0; i < batch; i++) {
        const result = run();
        if (result instanceof Promise) await result;
      }
      runs += batch;
      elapsed = performance.now() - begin;
    }
    const { user, system } = process.cpuUsage(cpuBegin);
    if (round === 0) continue;
    wall.push(elapsed / runs);
    cpu.push((user + system) / runs);
  }
  return { step, perSecond: 1_000 / Math.min(...wall), cpuMicroseconds: Math.min(...cpu) };
}

async function benchAuthority(): Promise<Authority> {
  const { certificatePem, keyPem } = await createTestAuthority('bench ca');
  const certificate = new Uint8Array(new X509Certificate(certificatePem).raw);
  return { name: 'ca', certificate, intermediates: [], signer: embeddedSigner(keyPem) };
}

/** The request as the relay posts it, with the fields that the API server added. */
function approvedObject(): object {
  const name = 'bench-sample';
  const { spec, ...rest } = requestObject(name, kubeletRequest(name, 0)) as { spec: object };
  return {
    ...rest,
    metadata: { name, uid: randomUUID(), resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { ...spec, username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', 'system:authenticated'] },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'AutoApproved', message: 'by the benchmark' }] },
  };
}

function decodeObject(text: string): RequestObject {
  const decoded = decodeRequestObject(JSON.parse(text));
  if (!decoded.ok) throw new Error(decoded.problem.message);
  return decoded.value;
}

function templateOf(
  { usages }: RequestObject,
  request: LeafTemplate['request'],
  maxTtlSeconds: number,
  authority: Authority,
): LeafTemplate {
  const now = Date.now();
  const { notAfter: caNotAfter } = issuerOf(authority).facts;
  const span = validity({ maxTtlSeconds, expirationSeconds: undefined, caNotAfter, now });
  return { request, usages, serial: serialFrom(randomBytes(16)), ...span };
}
