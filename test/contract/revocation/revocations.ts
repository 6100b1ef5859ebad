/** What each store of revocations and CRLs has to keep, and the rule that makes CRLs of them. */
import { createHash, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CrlStore, Revocation, RevocationStore, StoredCrl } from '../../../core/ports/revocations.ts';
import { renewCrl } from '../../../core/revocation/renew-crl.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import { createTestAuthority } from '../../harness/x509/test-certificates.ts';

export interface RevocationsUnderTest {
  readonly revocations: RevocationStore;
  readonly crls: CrlStore;
  readonly close: () => Promise<void>;
}

const now = Date.UTC(2026, 10, 22, 12);
const hour = 3_600_000;

export function revocationFixture(change: Partial<Revocation> = {}): Revocation {
  const serial = `1${randomBytes(15).toString('hex').slice(1)}`;
  return {
    caKeyId: `arn:aws:kms:eu-central-1:123456789012:key/${randomUUID()}#x`,
    serial,
    fingerprint: createHash('sha256').update(serial).digest('hex'),
    notAfter: now + 24 * hour,
    reason: 'keyCompromise',
    at: now,
    by: 'arn:aws:iam::123456789012:user/ops',
    note: 'stolen, ticket 4711',
    matchedBy: 'node#worker-3',
    auditId: '01JD0000000000000000000000',
    uid: randomUUID(),
    ...change,
  };
}

export function revocationsContract(name: string, open: () => Promise<RevocationsUnderTest>): void {
  describe(`revocations: ${name}`, () => {
    let opened: RevocationsUnderTest;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    const listed = async (caKeyId: string, at = now) =>
      (await Array.fromAsync(opened.revocations.list(caKeyId, at))).map(({ serial }) => serial);

    test('keeps the first revocation of a certificate', async () => {
      const first = revocationFixture({ identity: 'aws#aws/1/eu/i-1', nodeName: 'n1' });
      const { caKeyId, serial } = first;
      expect(await opened.revocations.find(caKeyId, serial)).toBeUndefined();
      expect(await opened.revocations.add(first)).toEqual(first);
      const second = revocationFixture({ caKeyId, serial, reason: 'superseded', at: now + 1 });
      expect(await opened.revocations.add(second)).toEqual(first);
      expect(await opened.revocations.find(caKeyId, serial)).toEqual(first);
    });

    test('lists what has not expired, of one CA, by the end of its certificates', async () => {
      const { caKeyId } = revocationFixture();
      const [late, early, over] = [
        revocationFixture({ caKeyId, notAfter: now + 3 * hour }),
        revocationFixture({ caKeyId, notAfter: now + 1 }),
        revocationFixture({ caKeyId, notAfter: now }),
      ];
      for (const each of [late, early, over, revocationFixture()]) await opened.revocations.add(each);
      expect(await listed(caKeyId)).toEqual([early.serial, late.serial]);
      expect(await listed(caKeyId, now + 2 * hour)).toEqual([late.serial]);
    });

    test('pages', async () => {
      const { caKeyId } = revocationFixture();
      // More than a page of the embedded store; in DynamoDB more than one of 1 MB.
      const all = Array.from({ length: 700 }, () => revocationFixture({ caKeyId, note: 'x'.repeat(1_800) }));
      for (let i = 0; i < all.length; i += 50)
        await Promise.all(all.slice(i, i + 50).map((each) => opened.revocations.add(each)));
      expect((await listed(caKeyId)).toSorted()).toEqual(all.map(({ serial }) => serial).toSorted());
    });

    test('replaces a CRL only by the next one', async () => {
      const { caKeyId } = revocationFixture();
      const crl = (number: number, byte: number): StoredCrl => ({
        caKeyId,
        number,
        thisUpdate: now,
        nextUpdate: now + hour,
        der: Buffer.alloc(10, byte),
        revoked: [],
        kmsRequestId: `kms-${number}`,
      });
      const found = async () => {
        const stored = await opened.crls.findCrl(caKeyId);
        return stored === undefined ? undefined : { ...stored, der: Buffer.from(stored.der ?? []) };
      };
      expect(await found()).toBeUndefined();
      expect(await opened.crls.findHead(caKeyId)).toBeUndefined();
      expect(await opened.crls.putCrl(crl(2, 0))).toBe(false);
      expect(await opened.crls.putCrl(crl(1, 1))).toBe(true);
      expect(await opened.crls.putCrl(crl(1, 9))).toBe(false);
      expect(await found()).toEqual(crl(1, 1));
      for (const number of [2, 3, 4]) expect(await opened.crls.putCrl(crl(number, number))).toBe(true);
      expect(await opened.crls.putCrl(crl(4, 9))).toBe(false);
      expect(await found()).toEqual(crl(4, 4));
      const { der: _, revoked: __, ...head } = crl(4, 4);
      expect(await opened.crls.findHead(caKeyId)).toEqual(head);
    });

    test('of CRLs stored at the same moment one wins, and is whole', async () => {
      const { caKeyId } = revocationFixture();
      const crl = (byte: number): StoredCrl => ({
        caKeyId,
        number: 1,
        thisUpdate: now,
        nextUpdate: now + hour,
        revoked: [],
        der: Buffer.alloc(10, byte),
      });
      const won = await Promise.all([1, 2, 3].map((byte) => opened.crls.putCrl(crl(byte))));
      expect(won.filter(Boolean)).toHaveLength(1);
      expect((await opened.crls.findCrl(caKeyId))?.der?.[0]).toBe(won.indexOf(true) + 1);
    });

    test('keeps a CRL that is larger than an item', async () => {
      const der = randomBytes(1_000_000);
      const { caKeyId } = revocationFixture();
      const crl: StoredCrl = { caKeyId, number: 1, thisUpdate: now, nextUpdate: now + hour, der, revoked: [] };
      expect(await opened.crls.putCrl(crl)).toBe(true);
      expect(Buffer.from((await opened.crls.findCrl(caKeyId))?.der ?? []).equals(der)).toBe(true);
    });

    describe('the CRL of a CA', () => {
      let authority: Authority;
      let at = now;
      const renew = (...serials: string[]) => renewCrl(authority, serials, { ...opened, now: () => at });
      beforeAll(async () => {
        const { certificatePem, keyPem } = await createTestAuthority('crl ca');
        const certificate = new Uint8Array(new X509Certificate(certificatePem).raw);
        const signer = embeddedSigner(keyPem);
        authority = { name: 'nodes', certificate, intermediates: [], signer };
      });

      test('is issued, stays as it is, is issued again for a revocation, after a day, and without what expired', async () => {
        expect(await renew()).toMatchObject({ issued: true, crl: { number: 1, revoked: [] } });
        expect(await renew()).toMatchObject({ issued: false, crl: { number: 1 } });
        const revocation = revocationFixture({ caKeyId: authority.signer.keyId, notAfter: now + 30 * hour });
        await opened.revocations.add(revocation);
        const { serial, fingerprint, notAfter, reason } = revocation;
        const listed = [{ serial, fingerprint, notAfter, reason, at: now }];
        expect(await renew(serial)).toMatchObject({ issued: true, crl: { number: 2, revoked: listed } });
        at = now + 24 * hour;
        expect(await renew()).toMatchObject({ issued: true, crl: { number: 3, revoked: listed } });
        expect(await renew()).toMatchObject({ issued: false, crl: { number: 3 } });
        at = now + 49 * hour;
        expect(await renew()).toMatchObject({ issued: true, crl: { number: 4, revoked: [] } });
      });

      test('disregards a serial number of no revocation', async () => {
        const before = await renew();
        expect(await renew('11')).toMatchObject({ issued: false, crl: { number: before.crl.number } });
      });

      test('has all revocations of calls at the same moment', async () => {
        const many = Array.from({ length: 3 }, () =>
          revocationFixture({ caKeyId: authority.signer.keyId, notAfter: at + hour }),
        );
        await Promise.all(
          many.map(async (each) => {
            await opened.revocations.add(each);
            await renew(each.serial);
          }),
        );
        const serials = (await opened.crls.findCrl(authority.signer.keyId))?.revoked.map(({ serial }) => serial);
        expect(serials).toEqual(expect.arrayContaining(many.map(({ serial }) => serial)));
      });
    });
  });
}
