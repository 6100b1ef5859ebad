import { X509Certificate, sign } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fc } from '../../../harness/determinism/properties.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { issueCaCertificate } from '../../../../core/ca/issue-ca-certificate.ts';
import { checkCertificate } from '../../../../core/x509/check-issued.ts';
import { assembleCertificate, buildTbs } from '../../../../core/x509/leaf-certificate.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { serialFrom } from '../../../../core/x509/validity.ts';
import { isRefusalCode } from '../../../../core/outcome/outcome.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { Signer } from '../../../../core/ports/signer.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { attribute, makeRequest, newKey, pemBlock } from '../../../harness/x509/requests.ts';
import type { MadeRequest, RequestSpec, TestKeyKind } from '../../../harness/x509/requests.ts';

/** A request with something of everything, so that a change can hit anything. */
const rich: RequestSpec = {
  subject: [
    [
      ['O', 'system:nodes'],
      ['O', der.utf8('Zürich')],
    ],
    [['OU', der.bmp('unit')]],
    [['CN', 'system:node:n1']],
  ],
  sans: {
    dns: ['n1', 'n1.example.com'],
    email: ['a@example.com'],
    ip: ['10.0.0.1', '2001:db8::1'],
    uri: ['spiffe://example.com/n1'],
  },
  extensions: [{ oid: '2.5.29.15', critical: true, value: der.bits(Buffer.from([0x80]), 7) }],
  attributes: [attribute('1.2.840.113549.1.9.7', der.utf8('password'))],
};

/** One change of a few bytes at a place given as a fraction of the whole. */
type Edit = (bytes: Buffer) => Buffer;
const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const octet = fc.oneof(
  fc.integer({ min: 0, max: 255 }),
  fc.constantFrom(0x00, 0x01, 0x04, 0x06, 0x0c, 0x13, 0x14, 0x16, 0x1e, 0x30, 0x31, 0x7f, 0x80, 0x82, 0xa0, 0xff),
);
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(place, octet).map(([where, value]) => replaceLetter(where, value)) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(place, fc.integer({ min: 0x61, max: 0x7a }))
      .map(([where, letter]) => replaceLetter(where, letter)),
  },
  { weight: 4, arbitrary: fc.tuple(place, octet).map(([where, value]) => replaceAt(where, 1, [value])) },
  { weight: 1, arbitrary: fc.tuple(place, fc.nat(3)).map(([where, count]) => replaceAt(where, count, [])) },
  {
    weight: 1,
    arbitrary: fc.tuple(place, fc.array(octet, { maxLength: 3 })).map(([where, more]) => replaceAt(where, 0, more)),
  },
);
const edits = fc.array(edit, { minLength: 1, maxLength: 3 }).map(
  (all): Edit =>
    (bytes) =>
      all.reduce((changed, one) => one(changed), bytes),
);

/** Another letter in place of the next one: most such requests are good ones with other names. */
function replaceLetter(where: number, letter: number): Edit {
  return (bytes) => {
    const from = Math.floor(where * bytes.length);
    const at = bytes.findIndex((value, index) => index >= from && value >= 0x61 && value <= 0x7a);
    return at === -1 ? bytes : Buffer.concat([bytes.subarray(0, at), Buffer.of(letter), bytes.subarray(at + 1)]);
  };
}

function replaceAt(where: number, count: number, octets: readonly number[]): Edit {
  return (bytes) => {
    const at = Math.floor(where * bytes.length);
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(octets), bytes.subarray(at + count)]);
  };
}

/** Whatever comes in, the answer is a value: accepted, or violations of the closed set in plain words. */
function answerTo(text: Uint8Array): 'accepted' | 'refused' | 'no answer' {
  const answer = decodeRequest(text);
  if (answer.ok) return 'accepted';
  const plain = answer.problem.every(({ code, message }) => isRefusalCode(code) && /^[ -~]{5,200}$/.test(message));
  return plain && answer.problem.length > 0 ? 'refused' : 'no answer';
}

describe('never throws', () => {
  const made = makeRequest(rich);

  test('for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
        expect(answerTo(bytes)).toBe('refused');
      }),
      { numRuns: 300 },
    );
  });

  test('for any bytes in a PEM block', () => {
    const content = fc.uint8Array({ maxLength: 500 });
    fc.assert(
      fc.property(content, (bytes) => {
        expect(answerTo(Buffer.from(pemBlock('CERTIFICATE REQUEST', bytes)))).toBe('refused');
      }),
      { numRuns: 500 },
    );
  });

  test('for a request whose text was changed', () => {
    fc.assert(
      fc.property(edits, (change) => {
        expect(['accepted', 'refused']).toContain(answerTo(change(Buffer.from(made.bytes))));
      }),
      { numRuns: 500 },
    );
  });

  test('for a request whose DER was changed: the signature covers it', () => {
    fc.assert(
      fc.property(edits, (change) => {
        const changed = change(Buffer.from(made.der));
        fc.pre(!changed.equals(made.der));
        // An ECDSA signature has a second valid form (−s for s), but three changed bytes never give it.
        expect(answerTo(Buffer.from(pemBlock('CERTIFICATE REQUEST', changed)))).toBe('refused');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a request changed before it was signed', async () => {
  const caKey = newKey('P-256');
  const signer: Signer = {
    keyId: 'test',
    algorithm: 'ECDSA_SHA_256',
    sign: (tbs) => Promise.resolve({ bytes: sign('sha256', tbs, caKey.privateKey) }),
  };
  const span = { notBefore: Date.UTC(2026, 0, 1), notAfter: Date.UTC(2027, 0, 1) };
  const certificate = await issueCaCertificate(
    { subject: { commonName: 'CA' }, spki: caKey.spki, serial: serialFrom(new Uint8Array(16)), ...span, pathLength: 0 },
    signer,
  );
  const authority: Authority = { name: 'ca', certificate, intermediates: [], signer };
  const folder = mkdtempSync(join(tmpdir(), 'countersign-csr-'));
  writeFileSync(join(folder, 'ca.pem'), toPem('CERTIFICATE', certificate));
  writeFileSync(join(folder, 'ca.key'), caKey.keyPem);
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  /** The same changes each time: the next test asks another program, which may differ from us in a rare string. */
  const seed = 20_261_121;
  const accepted: Reading[] = [];

  test('is refused, or gives a certificate that passes the last check', () => {
    const keys = fc.constantFrom<TestKeyKind>('P-256', 'Ed25519');
    fc.assert(
      fc.property(edits, keys, (change, key) => {
        const request = makeRequest({ ...rich, key, info: change });
        const ours = ourReading(request);
        if (ours !== undefined) accepted.push(ours);
        expect(ours?.faults ?? answerTo(request.bytes)).toEqual(ours === undefined ? 'refused' : []);
      }),
      { numRuns: 1000, seed },
    );
    // If nothing were accepted any more, the next test would look at nothing.
    expect(accepted.length).toBeGreaterThan(100);
  });

  /** Independent of our reader: OpenSSL parses the request and copies what it saw into a certificate of its own. */
  test.skipIf(spawnSync('openssl', ['version']).status !== 0)('holds the names OpenSSL sees in it', () => {
    // Other types of names are named by us and kept by OpenSSL: nothing to compare.
    const comparable = accepted.filter(({ unsupported }) => unsupported === 0);
    const step = Math.ceil(comparable.length / 16);
    for (const { request, certificate } of comparable.filter((_, index) => index % step === 0)) {
      const ours = namesOf(new X509Certificate(certificate));
      const theirs = namesOf(new X509Certificate(opensslReading(request)));
      expect({ names: ours, pem: request.pem }).toEqual({ names: theirs, pem: request.pem });
    }
  });

  interface Reading {
    readonly request: MadeRequest;
    readonly certificate: Uint8Array;
    readonly unsupported: number;
    readonly faults: readonly string[];
  }

  function ourReading(made: MadeRequest): Reading | undefined {
    const answer = decodeRequest(made.bytes);
    if (!answer.ok) return undefined;
    const request = answer.value;
    const serial = serialFrom(new Uint8Array(16));
    const tbs = buildTbs({ request, usages: ['client auth'], serial, ...span }, authority);
    const leaf = assembleCertificate(tbs, sign('sha256', tbs, caKey.privateKey), 'ECDSA_SHA_256');
    const faults = checkCertificate(leaf, tbs, authority, request);
    return { request: made, certificate: leaf, unsupported: request.sans.unsupported.length, faults };
  }

  function opensslReading(request: MadeRequest): string {
    const ca = ['-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key'), '-set_serial', '1'];
    const run = spawnSync('openssl', ['x509', '-req', ...ca, '-copy_extensions', 'copyall'], { input: request.pem });
    if (run.status !== 0) throw new Error(`${run.stderr.toString()}\n${request.pem}`);
    return run.stdout.toString();
  }
});

/** The names that identify the holder: the last CN, all O, all alternative names. */
function namesOf(certificate: X509Certificate): unknown {
  const lines = certificate.subject?.split('\n') ?? [];
  const values = (type: string): string[] => lines.filter((line) => line.startsWith(`${type}=`));
  return {
    commonName: values('CN').at(-1),
    organizations: values('O').sort(),
    alternative: certificate.subjectAltName?.split(', ').sort(),
  };
}
