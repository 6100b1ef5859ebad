/**
 * What can be wrong with an issued answer and with the certificate in it. A second implementation judges: fields are read by
 * @peculiar/x509, signatures by OpenSSL in node:crypto.
 */
import 'reflect-metadata';
import type { X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { certificateField, certificatesIn, statusAndMessage } from './answers.ts';
import type { Answer } from './answers.ts';
import { unless } from './check.ts';

/** What is wrong with an answer that should carry a certificate. */
export function notIssued(answer: Answer): readonly string[] {
  const { status, json, headers } = answer;
  if (status !== 200) return [statusAndMessage(answer)];
  const field = certificateField(json);
  return [
    ...unless(json !== undefined, 'the answer is not JSON'),
    ...unless(
      /^application\/json *(;|$)/i.test(headers.get('content-type') ?? ''),
      `content-type is ${headers.get('content-type') ?? 'missing'}`,
    ),
    ...unless(field !== undefined && field !== '', '200 without status.certificate: the client strands the request'),
  ];
}

/** RFC 5280 §4.2.1.9 and .3; the extensions of the recipe in docs/signers.md, in order. */
const recipe = [
  ['2.5.29.15', 'keyUsage'],
  ['2.5.29.37', 'extKeyUsage'],
  ['2.5.29.19', 'basicConstraints'],
  ['2.5.29.14', 'subjectKeyIdentifier'],
  ['2.5.29.35', 'authorityKeyIdentifier'],
  ['2.5.29.17', 'subjectAltName'],
] as const;

export function notPem(base64: string): readonly string[] {
  const pem = Buffer.from(base64, 'base64');
  if (pem.toString('base64') !== base64) return ['it is not canonical base64'];
  const text = pem.toString('latin1');
  if (!/^(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END CERTIFICATE-----\n)+$/.test(text))
    return ['it is not a run of PEM CERTIFICATE blocks'];
  try {
    certificatesIn(text);
    return [];
  } catch {
    return ['a certificate in it cannot be parsed'];
  }
}

export function brokenChain(
  chain: readonly [X509Certificate, ...X509Certificate[]],
  anchors: readonly X509Certificate[],
): readonly string[] {
  const signs = (issuer: X509Certificate, subject: X509Certificate): boolean =>
    issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
  const problems = chain.slice(1).flatMap((issuer, index) => {
    const subject = chain[index];
    return unless(
      subject !== undefined && signs(issuer, subject),
      `certificate ${index + 1} is not signed by the next`,
    );
  });
  const last = chain.at(-1) ?? chain[0];
  return [
    ...problems,
    ...unless(
      // Of client certificates the anchor may be an intermediate, which is then sent along.
      anchors.some((anchor) => signs(anchor, last) || (chain.length > 1 && anchor.raw.equals(last.raw))),
      'no CA of the signer’s trust bundle has signed it',
    ),
    ...unless(
      !chain.some((each) => each.ca && each.checkIssued(each) && each.verify(each.publicKey)),
      'the root is sent along',
    ),
  ];
}

export function notALeaf(leaf: X509Certificate): readonly string[] {
  let read: x509.X509Certificate;
  try {
    read = secondReading(leaf);
  } catch {
    return ['a second reader cannot read it'];
  }
  const found = read.extensions.map(({ type }) => type);
  const known = recipe.map(([oid]) => oid as string).filter((oid) => found.includes(oid));
  const constraints = read.getExtension(x509.BasicConstraintsExtension);
  const value = constraints === null ? 'absent' : Buffer.from(constraints.value).toString('hex');
  const usages = read.getExtension(x509.KeyUsagesExtension)?.usages ?? 0;
  return [
    // X509Certificate.ca asks for keyCertSign as well, which other verifiers do not.
    ...unless(
      constraints?.critical === true && value === '3000',
      `basicConstraints is ${value}, not 3000 and critical`,
    ),
    ...unless(
      (usages & (x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign)) === 0,
      'its key may sign certificates or CRLs',
    ),
    ...unless(
      found.join() === known.join(),
      `its extensions are not those of the recipe, in order (${recipe.map(([, name]) => name).join(', ')})`,
    ),
  ];
}

function secondReading(certificate: X509Certificate): x509.X509Certificate {
  return new x509.X509Certificate(new Uint8Array(certificate.raw));
}

/** The endpoint's clock and the checker's may differ by a minute. */
const clockLeeway = 60_000;

export function wrongValidity(leaf: X509Certificate, anchors: readonly X509Certificate[]): readonly string[] {
  const now = Date.now();
  const { notBefore, notAfter } = secondReading(leaf);
  const [from, to] = [notBefore.getTime(), notAfter.getTime()];
  const issuers = anchors.filter((anchor) => leaf.checkIssued(anchor));
  return [
    ...unless(from <= now + clockLeeway, `it is not valid yet: from ${leaf.validFrom}`),
    ...unless(from >= now - 15 * 60_000, `it began long ago: ${leaf.validFrom}`),
    ...unless(to > now - clockLeeway, `it has ended: ${leaf.validTo}`),
    ...unless(
      issuers.every(({ validToDate }) => to <= validToDate.getTime()),
      'it outlives its CA',
    ),
  ];
}
