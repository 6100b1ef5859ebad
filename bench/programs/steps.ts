/** Each step of issuing one certificate by itself, in this process, one step after the other. */
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
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
import { checkProfile } from '../../core/policy/check-profile.ts';
import { requestDigest } from '../../core/kubernetes/request-digest.ts';
import { certificateProblem } from '../../lambdas/watch-relay/objects/check-relayed-certificate.ts';
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
    ['relay: certificateProblem', () => certificateProblem(certificatePem, object.request)],
  ];
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
