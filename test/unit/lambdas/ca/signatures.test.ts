/** Every signature of the ca function has a record, whatever it signs. */
import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { CaKey } from '../../../../core/ca/authority.ts';
import { recordedKey } from '../../../../core/ca/recorded-key.ts';
import { childrenOf, derTag, encodingOf, readDer } from '../../../../core/encoding/der-reader.ts';
import type { SignatureRecord } from '../../../../core/ports/signature-log.ts';
import { createSite, deployEvent, siteNow } from './site.ts';
import type { CaSite } from './site.ts';

const cas = `{nodes: {subject: {commonName: nodes}}, later: {kind: imported, subject: {commonName: later}}}`;

/** The keys of the site, which are not in KMS, with the request IDs that KMS gives. */
function asInKms(site: CaSite): CaSite {
  let requests = 0;
  for (const [name, key] of site.keys) {
    const signer: CaKey['signer'] = (algorithm) => {
      const real = key.signer(algorithm);
      return { ...real, sign: async (tbs) => ({ ...(await real.sign(tbs)), requestId: `kms-${(requests += 1)}` }) };
    };
    site.keys.set(name, { ...key, signer });
  }
  return site;
}

test('a CA certificate, a request for one, and a CRL: before the key signs, and then with the KMS request', async () => {
  const site = asInKms(await createSite(cas, 'nodes'));
  const told = () => [...site.signatures.values()].map(({ ca, action, kmsRequestId }) => [ca, action, kmsRequestId]);
  await site.handler(deployEvent);
  expect(told()).toEqual([['nodes', 'deploy', 'kms-1']]);
  await site.handler({ action: 'csr', ca: 'later' });
  await site.handler({ action: 'crl' });
  expect(told().slice(1)).toEqual([
    ['later', 'csr', 'kms-2'],
    ['nodes', 'crl', 'kms-3'],
  ]);
  // What signs nothing leaves nothing.
  for (const action of ['crl', 'show', 'init']) await site.handler({ action });
  expect(site.signatures.size).toBe(3);
  // The digest of what was signed finds the CRL among those that were published.
  const { keyId } = site.ports.key('nodes');
  const crl = await site.ports.crls.findCrl(keyId);
  const list = readDer(crl!.der!);
  const [tbs] = (list.ok && childrenOf(list.value, derTag.sequence)) || [];
  const [, , record] = site.signatures.values();
  expect(record).toMatchObject({ caKeyId: keyId, at: siteNow, tbsSha256: hash('sha256', encodingOf(tbs!), 'hex') });
});

test('without its record nothing is signed; a signature that fails leaves the record without a KMS request', async () => {
  const site = asInKms(await createSite(cas, 'nodes'));
  const key = site.keys.get('nodes')!;
  const [algorithm] = ['ECDSA_SHA_256'] as const;
  let signed = 0;
  const broken: CaKey = {
    ...key,
    signer: () => ({
      ...key.signer(algorithm),
      sign: () => {
        signed += 1;
        return Promise.reject(new Error('KMS did not answer'));
      },
    }),
  };
  const kept: SignatureRecord[] = [];
  const about = { ca: 'nodes', action: 'crl' };
  const { origin } = site.ports;
  const full = { signatures: { put: () => Promise.reject(new Error('the table is full')) }, origin };
  await expect(recordedKey(broken, about, full).signer(algorithm).sign(Buffer.of(1))).rejects.toThrow(
    'the table is full',
  );
  expect(signed).toBe(0);
  const signatures = { put: async (record: SignatureRecord) => void kept.push(record) };
  await expect(recordedKey(broken, about, { signatures, origin }).signer(algorithm).sign(Buffer.of(1))).rejects.toThrow(
    'KMS did not answer',
  );
  expect([signed, kept.map(({ kmsRequestId }) => kmsRequestId)]).toEqual([1, [undefined]]);
});
