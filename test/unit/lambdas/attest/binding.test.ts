import { createHash } from 'node:crypto';
import { fc } from '../../../harness/determinism/properties.ts';
import { expect, test } from 'vitest';
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import type { Bound } from '../../../../core/attestation/evidence/binding-digest.ts';

const bound: Bound = {
  audience: '123456789012/eu-central-1/prod',
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  nodeName: 'node-1',
  nonce: '',
  spki: Buffer.from('3059', 'hex'),
};

/** Written out by hand, with other means than the code: what a node agent in another language has to compute. */
test('is the digest of the page, byte by byte', () => {
  const hex =
    '637372 2d 617474657374 2f 7631 00'.replaceAll(' ', '') +
    `001e${Buffer.from(bound.audience).toString('hex')}` +
    `002b${Buffer.from(bound.signerName).toString('hex')}` +
    '00066e6f64652d31' +
    '0000' +
    createHash('sha256').update(bound.spki).digest('hex');
  expect(bindingDigest(bound)).toBe(createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex'));
});

test('no two sets of fields have one digest, wherever text moves between them', () => {
  const text = fc.string({ maxLength: 6 });
  const fields = fc.record({ audience: text, signerName: text, nodeName: text, nonce: text, spki: fc.uint8Array() });
  fc.assert(
    fc.property(fields, fields, (one, two) => {
      const same =
        one.audience === two.audience &&
        one.signerName === two.signerName &&
        one.nodeName === two.nodeName &&
        one.nonce === two.nonce &&
        Buffer.compare(one.spki, two.spki) === 0;
      expect(bindingDigest(one) === bindingDigest(two)).toBe(same);
    }),
    { numRuns: 500 },
  );
  expect(bindingDigest({ ...bound, signerName: 'ab', nodeName: 'c' })).not.toBe(
    bindingDigest({ ...bound, signerName: 'a', nodeName: 'bc' }),
  );
});

test('a field too long for its length is not cut', () => {
  expect(() => bindingDigest({ ...bound, nonce: 'x'.repeat(65_536) })).toThrow(RangeError);
});
