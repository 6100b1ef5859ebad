/** The kubeadm function: certificates of kubeadm's control plane, recorded as all others are. */
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import type { OperatorLogEntry } from '../../../../adapters/lambda/operator-call.ts';
import { loadAuthority } from '../../../../core/ca/authority.ts';
import type { AttestationAdmin } from '../../../../core/ports/attestation-store.ts';
import type { CertificateReads } from '../../../../core/ports/certificate-reads.ts';
import { kubeadmCertificates, kubeadmProfiles } from '../../../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../../../core/kubeadm/certificates.ts';
import { leaseMilliseconds } from '../../../../core/sign-once.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { notConfigured } from '../../../../core/sign-kubeadm.ts';
import type { KubeadmResult } from '../../../../core/sign-kubeadm.ts';
import { createKubeadmHandler } from '../../../../lambdas/kubeadm/handler.ts';
import type { KubeadmHandler, KubeadmSite } from '../../../../lambdas/kubeadm/handler.ts';
import { makeRequest, newKey, sharedKey } from '../../../harness/x509/requests.ts';
import { kubeadmFile, kubeadmKeys, kubeadmRequests } from '../../core/kubeadm/requests.ts';
import { createSiteOf, siteNow } from '../ca/site.ts';
import type { CaSite } from '../ca/site.ts';

const day = 86_400_000;
const operator = 'arn:aws:sts::111122223333:assumed-role/operator/jo';

interface Plane {
  readonly ports: Mutable<KubeadmSite['ports']>;
  readonly handler: KubeadmHandler;
  readonly log: OperatorLogEntry[];
  /** CA certificates and keys, by CA. */
  readonly cas: Pick<CaSite, 'records' | 'keys'>;
  readonly reads: CertificateReads;
  /** Where operators lock nodes. */
  readonly register: AttestationAdmin;
}
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

async function planeInForce(yaml = kubeadmFile()): Promise<Plane> {
  const site = await createSiteOf(yaml);
  await site.handler({ action: 'init' });
  return planeOf(site);
}

/** The function of the cluster of a ca function. */
function planeOf(site: CaSite): Plane {
  const { kubeadm } = site.cluster;
  if (kubeadm === undefined) throw new Error('the file has no kubeadm');
  const { ledger, reads } = openEmbeddedLedger(':memory:');
  const { store: locks, register } = openEmbeddedAttestations(':memory:');
  const ports: Plane['ports'] = {
    ledger,
    locks,
    loadCa: (ca) => loadAuthority(ca, site.keys.get(ca.name)!, site.ports.store),
    now: () => siteNow,
    randomBytes,
  };
  const log: OperatorLogEntry[] = [];
  const cluster = { ...site.cluster, kubeadm };
  const handler = createKubeadmHandler({ connect: () => ({ cluster, ports }), log: (entry) => log.push(entry) });
  return { ports, handler, log, cas: site, reads, register };
}

/** Each made once: an ECDSA signature is another one each time. */
const requests = new Map(kubeadmCertificates.map((name) => [name, makeRequest(kubeadmRequests[name]).pem]));

async function ask(plane: Plane, certificate: KubeadmCertificate, more: object = {}): Promise<KubeadmResult> {
  const csr = requests.get(certificate);
  const event = { certificate, csr, by: operator, ...more };
  const context = { invokedFunctionArn: 'arn', awsRequestId: 'request-1' };
  const { result, cluster, name } = await plane.handler(event, context);
  expect([cluster, name]).toEqual(['prod', certificate]);
  return result;
}

function certificateOf(result: KubeadmResult): X509Certificate {
  if (!result.ok || result.certificatePem === undefined) throw new Error(JSON.stringify(result));
  return new X509Certificate(result.certificatePem);
}

async function records(plane: Plane) {
  return Array.fromAsync(plane.reads.listByExpiry({ from: 0, to: siteNow + 4000 * day }));
}

describe.each(kubeadmCertificates)('%s', (name) => {
  const include = name === 'super-admin.conf' ? { include: ['super-admin'] } : {};

  test('is signed by its CA with the usages and the lifetime of kubeadm, and recorded', async () => {
    const plane = await planeInForce();
    const result = await ask(plane, name, include);
    const certificate = certificateOf(result);
    const ofEtcd = name.startsWith('etcd-') || name === 'apiserver-etcd-client';
    const caName = ofEtcd ? 'etcd' : name === 'front-proxy-client' ? 'front-proxy' : 'kubernetes';
    expect(result).toMatchObject({ ok: true, ca: caName });
    const ca = new X509Certificate(plane.cas.records.get(caName)!.certificate);
    expect(certificate.checkIssued(ca) && certificate.verify(ca.publicKey) && !certificate.ca).toBe(true);
    expect(certificate.keyUsage).toEqual(
      name === 'apiserver'
        ? ['1.3.6.1.5.5.7.3.1']
        : name === 'etcd-server' || name === 'etcd-peer'
          ? ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']
          : ['1.3.6.1.5.5.7.3.2'],
    );
    const facts = certificateFacts(certificate.raw);
    // Digital signature and key encipherment, critical.
    expect(facts.extensions.get('2.5.29.15')).toMatchObject({ critical: true, value: Buffer.from('030205a0', 'hex') });
    expect(facts.notAfter).toBe(siteNow + 365 * day - 300_000);

    expect(await records(plane)).toMatchObject([
      {
        uid: expect.stringMatching(new RegExp(`^kubeadm/${caName}/${name}/[0-9a-f]{64}$`)) as string,
        state: 'issued',
        serial: facts.serial,
        certificate: new Uint8Array(certificate.raw),
        lambdaRequestId: 'request-1',
        request: { signerName: 'countersign.dev/kubeadm', requester: operator, usages: kubeadmProfiles[name].usages },
      },
    ]);
    expect(plane.log.at(-1)).toMatchObject({ level: 'info', action: 'kubeadm', cas: { [caName]: `${name}: signed` } });
  });

  test('is the same certificate however often it is asked for, and no record for a dry run', async () => {
    const plane = await planeInForce();
    expect(await ask(plane, name, { ...include, dryRun: true })).toEqual({
      ok: true,
      ca: expect.any(String) as string,
      caPem: expect.stringContaining('BEGIN CERTIFICATE') as string,
    });
    expect(await records(plane)).toEqual([]);
    const first = await ask(plane, name, include);
    expect(await ask(plane, name, { ...include, by: 'another operator' })).toEqual(first);
    expect(await records(plane)).toHaveLength(1);
  });
});

test('a CSR for another certificate is refused with the reason, and nothing is recorded', async () => {
  const plane = await planeInForce();
  const csr = makeRequest(kubeadmRequests['super-admin.conf']).pem;
  expect(await ask(plane, 'admin.conf', { csr })).toEqual({
    ok: false,
    why: 'SubjectNotPermitted',
    message:
      'common name "kubernetes-super-admin" is not that of kubeadm (kubernetes-admin); organizations "system:masters" are not those of kubeadm (O "kubeadm:cluster-admins")',
  });
  expect(await ask(plane, 'admin.conf', { csr: 'x' })).toMatchObject({ why: 'RequestMalformed' });
  expect(await ask(plane, 'admin.conf', { csr: '' })).toMatchObject({
    message: expect.stringMatching(/^the request /) as string,
  });
  const tampered = makeRequest({
    ...kubeadmRequests['admin.conf'],
    signature: (bytes) => bytes.fill(1, bytes.length - 4),
  });
  expect(await ask(plane, 'admin.conf', { csr: tampered.pem })).toMatchObject({ why: 'SignatureInvalid' });
  expect(await records(plane)).toEqual([]);
});

test('super-admin.conf needs the word of the operator, and no other word is understood', async () => {
  const plane = await planeInForce();
  expect(await ask(plane, 'super-admin.conf')).toMatchObject({ ok: false, why: 'NotIncluded' });
  const csr = makeRequest(kubeadmRequests['super-admin.conf']).pem;
  const asked = { certificate: 'super-admin.conf', csr, by: operator };
  for (const event of [
    { ...asked, include: ['everything'] },
    { ...asked, include: 'super-admin' },
    { ...asked, certificate: 'ca' },
    { ...asked, certificate: 'constructor' },
    { ...asked, csr: 1 },
    { ...asked, by: undefined },
    { ...asked, by: 'x'.repeat(513) },
    { ...asked, dryRun: 'no' },
    { ...asked, usages: ['any'] },
  ])
    await expect(plane.handler(event)).rejects.toThrow(TypeError);
});

test('a configuration without the key is named as a whole', () => {
  expect(notConfigured('prod')).toEqual({
    why: 'NotConfigured',
    message: 'the configuration of cluster prod has no kubeadm',
  });
});

test('a certificate without a configured CA is refused', async () => {
  const some = await planeInForce(kubeadmFile(kubeadmKeys.replace(', etcd: etcd}', '}')));
  expect(await ask(some, 'etcd-peer')).toEqual({
    ok: false,
    why: 'NotConfigured',
    message: 'the configuration of cluster prod has no kubeadm.cas.etcd',
  });
  expect(await ask(some, 'apiserver')).toMatchObject({ ok: true });
});

test('the certificate names the CRL of its CA where the configuration does, and the record no invocation outside Lambda', async () => {
  const url = 'http://crl.example.com/etcd.crl';
  for (const point of [url, undefined]) {
    const cas = point === undefined ? 'etcd-ca}' : `etcd-ca}, crlDistributionPoint: '${point}'`;
    const plane = await planeInForce(kubeadmFile().replace('commonName: etcd-ca}', `commonName: ${cas}`));
    const csr = requests.get('etcd-peer');
    const answer = await plane.handler({ certificate: 'etcd-peer', csr, by: operator });
    const { extensions } = certificateFacts(certificateOf(answer.result).raw);
    const found = Buffer.from(extensions.get('2.5.29.31')?.value ?? []).toString('latin1');
    expect(found.includes(url)).toBe(point !== undefined);
    expect(Object.hasOwn((await records(plane))[0]!, 'lambdaRequestId')).toBe(false);
  }
});

test('a CA that is not in force signs nothing', async () => {
  const plane = planeOf(await createSiteOf(kubeadmFile()));
  expect(await ask(plane, 'apiserver')).toMatchObject({ ok: false, why: 'Missing' });
});

test('a locked node gets none of its certificates, not even a recorded one; those of no node are signed', async () => {
  const plane = await planeInForce();
  await ask(plane, 'apiserver');
  const lock = { id: '01ARZ3NDEKTSV4RRFFQ69G5FAV', nodeName: 'cp-1', at: siteNow, by: 'jo', reason: 'stolen' };
  await plane.register.lock(lock, { ...lock, action: 'lock', subject: 'cp-1' });
  for (const name of ['apiserver', 'etcd-server', 'etcd-peer', 'kubelet.conf'] as const)
    expect(await ask(plane, name)).toMatchObject({
      ok: false,
      why: 'Locked',
      message: 'node "cp-1" is locked by an operator',
    });
  expect(await ask(plane, 'admin.conf')).toMatchObject({ ok: true });
  const spkiSha256 = createHash('sha256').update(sharedKey('P-256').spki).digest('hex');
  const ofKey = { id: '01ARZ3NDEKTSV4RRFFQ69G5FAW', spkiSha256, at: siteNow, by: 'jo', reason: 'published' };
  await plane.register.lock(ofKey, { ...ofKey, action: 'lock', subject: `key#${spkiSha256}` });
  expect(await ask(plane, 'admin.conf')).toMatchObject({ ok: false, why: 'Locked' });
});

test('a certificate ends with its CA, and an expired one is not handed out again', async () => {
  const plane = await planeInForce(
    kubeadmFile().replace('commonName: etcd-ca}', 'commonName: etcd-ca}, validity: 30d'),
  );
  const certificate = certificateOf(await ask(plane, 'etcd-server'));
  expect(Date.parse(certificate.validTo)).toBe(siteNow + 30 * day);

  const long = await planeInForce();
  await ask(long, 'etcd-server');
  long.ports.now = () => siteNow + 366 * day;
  expect(await ask(long, 'etcd-server')).toMatchObject({ ok: false, why: 'KeyReused' });
  const csr = makeRequest({ ...kubeadmRequests['etcd-server'], key: newKey('P-256') }).pem;
  expect(await ask(long, 'etcd-server', { csr })).toMatchObject({ ok: true });
});

describe('a failure', () => {
  test('after the intent leaves a record, and the next call signs the same bytes', async () => {
    const plane = await planeInForce();
    const key = plane.cas.keys.get('kubernetes')!;
    let isDown = true;
    const signed: Uint8Array[] = [];
    plane.cas.keys.set('kubernetes', {
      ...key,
      signer: (algorithm) => {
        const signer = key.signer(algorithm);
        return {
          ...signer,
          sign: async (tbs) => {
            signed.push(tbs);
            if (isDown) throw new Error('KMS is down');
            return signer.sign(tbs);
          },
        };
      },
    });
    await expect(ask(plane, 'apiserver')).rejects.toThrow('KMS is down');
    expect(await records(plane)).toMatchObject([{ state: 'intent' }]);
    isDown = false;
    const certificate = certificateOf(await ask(plane, 'apiserver'));
    expect(signed[1]).toEqual(signed[0]);
    expect(await records(plane)).toMatchObject([
      { state: 'issued', serial: certificateFacts(certificate.raw).serial, attempt: 2 },
    ]);
  });

  test('that nobody completes within half of the lifetime ends the request', async () => {
    const plane = await planeInForce();
    const { ledger } = plane.ports;
    const crashed = { ...ledger, complete: () => Promise.reject(new Error('killed')) };
    plane.ports.ledger = crashed;
    await expect(ask(plane, 'apiserver')).rejects.toThrow('killed');
    plane.ports.ledger = ledger;
    plane.ports.now = () => siteNow + 200 * day;
    expect(await ask(plane, 'apiserver')).toMatchObject({ ok: false, why: 'IntentExpired' });
  });

  test('of the process after the signature leaves a lease, and after it the same bytes are signed', async () => {
    const plane = await planeInForce();
    const { ledger } = plane.ports;
    const crashed = { ...ledger, complete: () => Promise.reject(new Error('killed')), release: async () => {} };
    plane.ports.ledger = crashed;
    await expect(ask(plane, 'apiserver')).rejects.toThrow('killed');
    const [intent] = await records(plane);
    plane.ports.ledger = ledger;
    expect(await ask(plane, 'apiserver')).toMatchObject({ ok: false, why: 'InProgress' });
    plane.ports.now = () => siteNow + leaseMilliseconds;
    expect(certificateFacts(certificateOf(await ask(plane, 'apiserver')).raw).serial).toBe(intent!.serial);
  });
});
