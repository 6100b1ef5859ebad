import 'reflect-metadata';
import { spawnSync } from 'node:child_process';
import { constants, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CRLDistributionPointsExtension, X509Certificate, X509Crl } from '@peculiar/x509';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import { issueCaCertificate } from '../../../../core/ca/issue-ca-certificate.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { SignatureAlgorithm, Signer } from '../../../../core/ports/signer.ts';
import { buildCrlTbs } from '../../../../core/revocation/crl.ts';
import type { CrlTemplate } from '../../../../core/revocation/crl.ts';
import { issueCrl } from '../../../../core/revocation/issue-crl.ts';
import { renewCrl } from '../../../../core/revocation/renew-crl.ts';
import { reasonCodes } from '../../../../core/ports/revocations.ts';
import type { RevocationReason } from '../../../../core/ports/revocations.ts';
import { buildCaTbs, caValidity } from '../../../../core/x509/ca-certificate.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { assembleCertificate, buildTbs } from '../../../../core/x509/leaf-certificate.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { serialFrom } from '../../../../core/x509/validity.ts';
import { revocationFixture } from '../../../contract/revocation/revocations.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { makeRequest, newKey, sharedKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';

// openssl verify judges by the real time.
const now = Math.floor(Date.now() / 1000) * 1000;
const hour = 3_600_000;

function signerOf({ privateKey }: TestKey, algorithm: SignatureAlgorithm): Signer {
  const padding = algorithm.startsWith('RSASSA_PSS')
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : {};
  const bytes = (tbs: Uint8Array) => sign(`sha${algorithm.slice(-3)}`, tbs, { key: privateKey, ...padding });
  return { keyId: 'test', algorithm, sign: (tbs) => Promise.resolve({ bytes: bytes(tbs), requestId: 'kms-1' }) };
}

async function newAuthority(key = sharedKey('P-256'), algorithm: SignatureAlgorithm = 'ECDSA_SHA_256') {
  const signer = signerOf(key, algorithm);
  const certificate = await issueCaCertificate(
    {
      subject: { commonName: 'Prüf-CA', organization: 'Example' },
      spki: key.spki,
      serial: serialFrom(new Uint8Array(16)),
      ...caValidity(now, 86_400),
      pathLength: 0,
    },
    signer,
  );
  return { name: 'nodes', certificate, intermediates: [], signer } satisfies Authority;
}

async function leafOf(authority: Authority, serial: Uint8Array, crlDistributionPoint?: string): Promise<string> {
  const decoded = decodeRequest(Buffer.from(makeRequest().pem));
  if (!decoded.ok) throw new Error('no request');
  const usages = ['digital signature', 'client auth'];
  const tbs = buildTbs(
    {
      request: decoded.value,
      usages,
      serial,
      notBefore: now - hour,
      notAfter: now + hour,
      ...(crlDistributionPoint === undefined ? {} : { crlDistributionPoint }),
    },
    authority,
  );
  return toPem(
    'CERTIFICATE',
    assembleCertificate(tbs, (await authority.signer.sign(tbs)).bytes, authority.signer.algorithm),
  );
}

const reasons = Object.keys(reasonCodes) as RevocationReason[];
/** One entry for each reason. The first octet of the serial numbers is below and above 0x80, which needs a sign octet. */
const entries = reasons.map((reason, index) => ({
  serial: Buffer.of(0x01 + index * 0x30, 0xff, index).toString('hex'),
  at: now - index * 60_000,
  reason,
}));
const template: CrlTemplate = { number: 1_000, thisUpdate: now - 300_000, nextUpdate: now + 7 * 24 * hour, entries };

describe.each<[TestKey['kind'], SignatureAlgorithm]>([
  ['P-256', 'ECDSA_SHA_256'],
  ['P-384', 'ECDSA_SHA_384'],
  ['P-521', 'ECDSA_SHA_512'],
  ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_256'],
  ['RSA-2048', 'RSASSA_PSS_SHA_384'],
])('a CRL of a %s CA with %s', (kind, algorithm) => {
  test('is read by @peculiar/x509 as it was meant, and verifies', async () => {
    const authority = await newAuthority(sharedKey(kind), algorithm);
    const { der, kmsRequestId } = await issueCrl(template, authority);
    expect(kmsRequestId).toBe('kms-1');
    const crl = new X509Crl(new Uint8Array(der));
    const ca = new X509Certificate(new Uint8Array(authority.certificate));
    expect(await crl.verify({ publicKey: ca })).toBe(true);
    expect(crl.version).toBe(1);
    expect(crl.issuer).toBe(ca.subject);
    expect([crl.thisUpdate.getTime(), crl.nextUpdate?.getTime()]).toEqual([template.thisUpdate, template.nextUpdate]);
    const read = crl.entries.map((entry) => ({
      serial: entry.serialNumber.replace(/^00/, ''),
      at: entry.revocationDate.getTime(),
      reason: entry.reason,
    }));
    expect(read).toEqual(entries.map((entry) => ({ ...entry, reason: reasonCodes[entry.reason] })));
    expect(crl.extensions.map(({ type, critical }) => [type, critical])).toEqual([
      ['2.5.29.35', false],
      ['2.5.29.20', false],
    ]);
  });

  test('is accepted by openssl verify -crl_check, which refuses the revoked certificate alone', async () => {
    const authority = await newAuthority(sharedKey(kind), algorithm);
    const { path: folder, remove } = temporaryFolder('crl');
    onTestFinished(remove);
    const write = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const ca = write('ca.pem', toPem('CERTIFICATE', authority.certificate));
    const crl = write('crl.pem', toPem('X509 CRL', (await issueCrl(template, authority)).der));
    const revoked = write('revoked.pem', await leafOf(authority, Buffer.from(entries[4]!.serial, 'hex')));
    const other = write('other.pem', await leafOf(authority, Buffer.of(0x42)));
    const openssl = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync('openssl', args, { encoding: 'utf8', timeout: 30_000 });
      return { status, output: stdout + stderr };
    };
    const verify = (leaf: string) =>
      openssl('verify', '-x509_strict', '-crl_check', '-CAfile', ca, '-CRLfile', crl, leaf);
    expect(verify(other)).toMatchObject({ status: 0 });
    expect(verify(revoked).status).toBe(2);
    expect(verify(revoked).output).toContain('certificate revoked');
    expect(openssl('crl', '-in', crl, '-noout', '-CAfile', ca).output).toContain('verify OK');
    const text = openssl('crl', '-in', crl, '-noout', '-text').output;
    expect(text).toContain('Version 2 (0x1)');
    expect(text).toMatch(/X509v3 CRL Number: *\n *1000\n/);
    expect(text.match(/CRL Reason Code: *\n *(.+)/g)?.map((line) => line.split('\n')[1]?.trim())).toEqual([
      'Key Compromise',
      'CA Compromise',
      'Affiliation Changed',
      'Superseded',
      'Cessation Of Operation',
      'Privilege Withdrawn',
    ]);
  });
});

test('a CRL without entries has no list, and openssl accepts it', async () => {
  const authority = await newAuthority();
  const { der } = await issueCrl({ ...template, entries: [] }, authority);
  expect(new X509Crl(new Uint8Array(der)).entries).toEqual([]);
  // The element after the two times is the extensions, not an empty SEQUENCE (RFC 5280 §5.1.2.6).
  const run = spawnSync('openssl', ['crl', '-inform', 'DER', '-noout', '-text'], { input: der, encoding: 'utf8' });
  expect(run.stdout).toContain('No Revoked Certificates');
});

test('a certificate names the URL of the CRL, if its CA has one, and differs in nothing else', async () => {
  const authority = await newAuthority();
  const url = 'http://crl.example.com/nodes.crl';
  const read = (pem: string) => new X509Certificate(pem);
  const [plain, named] = [
    read(await leafOf(authority, Buffer.of(1))),
    read(await leafOf(authority, Buffer.of(1), url)),
  ];
  const extension = named.getExtension(CRLDistributionPointsExtension);
  expect(extension?.critical).toBe(false);
  const [point, ...others] = extension?.distributionPoints ?? [];
  expect(others).toEqual([]);
  expect(point?.distributionPoint?.fullName?.map(({ uniformResourceIdentifier }) => uniformResourceIdentifier)).toEqual(
    [url],
  );
  const ofExtensions = ({ extensions }: X509Certificate) => extensions.map(({ type }) => type);
  expect(ofExtensions(named)).toEqual([...ofExtensions(plain), '2.5.29.31']);
  const run = spawnSync('openssl', ['x509', '-noout', '-ext', 'crlDistributionPoints'], {
    input: named.toString('pem'),
    encoding: 'utf8',
  });
  expect(run.stdout).toContain(`URI:${url}`);
});

test('the order of the entries does not matter', async () => {
  const authority = await newAuthority();
  expect(buildCrlTbs({ ...template, entries: entries.toReversed() }, authority)).toEqual(
    buildCrlTbs(template, authority),
  );
});

test('times from 2050 on are GeneralizedTime', async () => {
  const authority = await newAuthority();
  const nextUpdate = Date.UTC(2051, 0, 2, 3, 4, 5);
  const { der } = await issueCrl({ ...template, nextUpdate }, authority);
  expect(new X509Crl(new Uint8Array(der)).nextUpdate?.getTime()).toBe(nextUpdate);
});

test('a signature of another key is not returned', async () => {
  const authority = await newAuthority();
  const wrong = { ...authority, signer: signerOf(newKey('P-256'), 'ECDSA_SHA_256') };
  await expect(issueCrl(template, wrong)).rejects.toThrow(
    'the signature of the CRL is not made with the key of CA nodes',
  );
});

test('a CA whose keyUsage lacks cRLSign signs none: its list is kept, which the relays need', async () => {
  const key = sharedKey('P-256');
  const own = { subject: { commonName: 'x' }, spki: key.spki, serial: Buffer.of(1), ...caValidity(now, 86_400) };
  const tbs = Buffer.from(buildCaTbs({ ...own, pathLength: 0, algorithm: 'ECDSA_SHA_256' })).toString('hex');
  const changed = Buffer.from(tbs.replace('03020106', '03020204'), 'hex');
  const signer = signerOf(key, 'ECDSA_SHA_256');
  const certificate = assembleCertificate(changed, (await signer.sign(changed)).bytes, 'ECDSA_SHA_256');
  const unused = { ...signer, sign: () => Promise.reject(new Error('it signs')) };
  const { revocations, crls, close } = openEmbeddedRevocations(':memory:');
  onTestFinished(close);
  const authority = { name: 'nodes', certificate, intermediates: [], signer: unused };
  const revocation = revocationFixture({ caKeyId: signer.keyId, at: now, notAfter: now + 3_600_000 });
  await revocations.add(revocation);
  const renewed = await renewCrl(authority, [], { revocations, crls, now: () => now });
  expect(renewed).toMatchObject({ issued: true, crl: { number: 1, revoked: [{ serial: revocation.serial }] } });
  const stored = await crls.findCrl(signer.keyId);
  expect(stored).toEqual(renewed.crl);
  expect(stored).not.toHaveProperty('der');
});

/** @peculiar/x509 reads no CRL of this size (`Maximum ASN.1 node count exceeded`). */
test('10 000 entries are read by openssl', async () => {
  const serials = Array.from({ length: 10_000 }, (_, index) =>
    Buffer.from(serialFrom(Buffer.alloc(16, `${index}`.padStart(16, '0')))).toString('hex'),
  );
  const many = serials.map((serial) => ({ serial, at: now, reason: 'superseded' }) as const);
  const { der } = await issueCrl({ ...template, entries: many }, await newAuthority());
  const options = { input: der, encoding: 'utf8', maxBuffer: 1 << 24 } as const;
  const run = spawnSync('openssl', ['crl', '-inform', 'DER', '-noout', '-text'], options);
  const read = [...run.stdout.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, hex = '']) => hex.toLowerCase());
  expect(read).toEqual(serials.toSorted());
});
