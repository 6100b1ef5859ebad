/**
 * What OpenSSL signed, in AWS's encoding and in others. The vectors were made with OpenSSL 3.0 by
 * test/harness/fake-aws/machine/region-ca.ts, whose keys were not kept:
 *
 *   openssl cms -sign -binary -nosmimecap -in document -signer region.pem -inkey region.key -md sha256 -nodetach -nocerts \
 *     -stream -indef -outform DER
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pinCertificate, verifySignedData } from '../../../../../core/attestation/aws/cms.ts';
import { document, forged, now } from '../../../../corpus/attestation/aws-machine.ts';
import { createRegionKey, signedMessage } from '../../../../corpus/attestation/cms-writer.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';

type Name =
  | 'ber'
  | 'der'
  | 'otherRegion'
  | 'embeddedCertificate'
  | 'noSignedAttributes'
  | 'detached'
  | 'twoSigners'
  | 'sha1'
  | 'sha384'
  | 'sha512'
  | 'md5'
  | 'keyIdentifier'
  | 'timestamp'
  | 'pss';
const vectors = JSON.parse(readFileSync(join(import.meta.dirname, '../openssl-vectors.json'), 'utf8')) as Record<
  Name,
  string
> & { readonly certificates: Readonly<Record<'eu-central-1' | 'us-east-1', string>> };

const pins = Object.entries(vectors.certificates).map(([region, der]) =>
  pinCertificate(region, Buffer.from(der, 'base64')),
);
const [own, other] = pins as [(typeof pins)[0], (typeof pins)[0]];
const bytes = (name: Name): Buffer => Buffer.from(vectors[name], 'base64');
const content = Buffer.from(JSON.stringify(document, undefined, 2));

describe('OpenSSL', () => {
  test.for<Name>(['ber', 'der', 'embeddedCertificate'])('%s is taken', (name) => {
    const verified = verifySignedData(bytes(name), pins, now);
    expect(verified).toMatchObject({ ok: true, value: { signer: { region: 'eu-central-1' } } });
    expect(verified.ok && content.equals(verified.value.content)).toBe(true);
  });

  test('writes what AWS writes: indefinite lengths and a string in pieces', () => {
    expect(bytes('ber').subarray(0, 2)).toEqual(Buffer.of(0x30, 0x80));
    expect(bytes('ber').includes(Buffer.of(0x24, 0x80, 0x04))).toBe(true);
  });

  test("another region's key is told by its serial number", () => {
    expect(verifySignedData(bytes('otherRegion'), pins, now)).toMatchObject({
      ok: true,
      value: { signer: { region: 'us-east-1' } },
    });
    expect(verifySignedData(bytes('otherRegion'), [own], now)).toEqual({
      ok: false,
      problem: 'is signed with the key of no region configured',
    });
    const mixedUp = { ...other, serial: own.serial };
    expect(verifySignedData(bytes('ber'), [mixedUp], now)).toEqual({
      ok: false,
      problem: 'is not signed with the key of us-east-1',
    });
  });

  test.for<[Name, string]>([
    ['noSignedAttributes', 'has no signed attributes'],
    ['detached', 'does not hold its content inside'],
    ['twoSigners', 'does not have exactly one signer'],
    ['sha1', 'is not digested with SHA-256'],
    ['sha384', 'is not digested with SHA-256'],
    ['sha512', 'is not digested with SHA-256'],
    ['md5', 'is not digested with SHA-256'],
    ['keyIdentifier', 'does not name its signer by serial number'],
    ['timestamp', 'does not hold data'],
    ['pss', 'is not signed with RSA (PKCS #1 v1.5)'],
  ])('%s is refused: it %s', ([name, problem]) => {
    expect(verifySignedData(bytes(name), pins, now)).toEqual({ ok: false, problem });
  });

  test('no certificate, no signer', () => {
    expect(verifySignedData(bytes('ber'), [], now)).toEqual({
      ok: false,
      problem: 'is signed with the key of no region configured',
    });
  });
});

describe('damage', () => {
  test.for<Name>(['ber', 'der'])('%s cut off anywhere is refused', (name) => {
    const whole = bytes(name);
    for (let length = 0; length < whole.length; length += 1)
      expect(verifySignedData(whole.subarray(0, length), pins, now)).toHaveProperty('problem');
  });

  // Some bits are of no meaning (names, versions, other attributes' places): a message is no identity and no once-key.
  test.for<Name>(['ber', 'der'])('%s with any one bit turned is refused, or says the same', (name) => {
    const message = bytes(name);
    let [flips, accepted, caught] = [0, 0, 0];
    // In the default tier a bit of nearly every octet, each time another one.
    const stride = byTier({ default: 7, deep: 1 });
    for (let bit = 0; bit < message.length * 8; bit += stride) {
      const damaged = Buffer.from(message);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      const verified = verifySignedData(damaged, pins, now);
      flips += 1;
      if (!verified.ok) caught += verified.problem === 'cannot be decoded' ? 1 : 0;
      else {
        accepted += 1;
        if (!content.equals(verified.value.content)) expect(verified.value.content).toEqual(content);
      }
    }
    expect(flips).toBeGreaterThan(5_000 / stride);
    expect(accepted).toBeGreaterThan(100 / stride);
    expect(accepted).toBeLessThan(flips / 4);
    // Reached, by few of all flips: what makes the decoder throw ends in a refusal as well.
    if (stride === 1) expect(caught).toBeGreaterThan(0);
  });

  test('thousands of elements cost nothing', () => {
    const elements = Buffer.concat(Array.from({ length: 5_000 }, () => Buffer.of(5, 0)));
    const message = Buffer.concat([Buffer.of(0x30, 0x82, elements.length >> 8, elements.length & 0xff), elements]);
    expect(verifySignedData(message, pins, now)).toEqual({ ok: false, problem: 'is not BER' });
  });
});

describe('pinCertificate', () => {
  test('takes RSA of 2048 bits and no less', () => {
    const { certificate, key } = createRegionKey({ bits: 2048 });
    expect(pinCertificate('eu-central-1', certificate)).toMatchObject({ region: 'eu-central-1' });
    expect(key.type).toBe('private');
    for (const kind of ['ec', 'rsa-pss'] as const)
      expect(() => pinCertificate('eu-central-1', createRegionKey({ kind }).certificate)).toThrow('an RSA key');
    expect(() => pinCertificate('eu-central-1', createRegionKey({ bits: 1024 }).certificate)).toThrow(
      'at least 2048 bits',
    );
  });

  test('takes nothing but a certificate', () => {
    expect(() => pinCertificate('eu-central-1', bytes('ber'))).toThrow();
  });

  test('of several keys with one serial number, none stands in for another', () => {
    // Nothing of AWS has that; an operator's file might. The first one pinned is the one.
    const first = createRegionKey({ serial: 0xa0febfa2de47f5abn });
    const pinned = [pinCertificate('eu-central-1', first.certificate), pinCertificate('us-east-1', forged.certificate)];
    expect(verifySignedData(signedMessage(content, first), pinned, now)).toMatchObject({
      ok: true,
      value: { signer: { region: 'eu-central-1' } },
    });
    expect(verifySignedData(signedMessage(content, forged), pinned, now)).toHaveProperty('problem');
  });
});
