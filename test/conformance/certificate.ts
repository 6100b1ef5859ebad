/** What can be wrong with an issued answer and with the certificate in it. Judged by node:crypto and a reader of the tests' own. */
import type { X509Certificate } from 'node:crypto';
import { fieldsOf } from '../corpus/certificate-fields.ts';
import { certificateField, certificatesIn, saidBy } from './answers.ts';
import type { Answer } from './answers.ts';
import { unless } from './check.ts';

/** What is wrong with an answer that should carry a certificate. */
export function notIssued(answer: Answer): readonly string[] {
  const { status, json, headers } = answer;
  if (status !== 200) return [saidBy(answer)];
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

/** RFC 5280 §4.2.1.9 and .3; what the recipe in docs/signers.md holds, and its order. Hex of the object identifiers. */
const recipe = [
  ['551d0f', 'keyUsage'],
  ['551d25', 'extKeyUsage'],
  ['551d13', 'basicConstraints'],
  ['551d0e', 'subjectKeyIdentifier'],
  ['551d23', 'authorityKeyIdentifier'],
  ['551d11', 'subjectAltName'],
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
      anchors.some((anchor) => signs(anchor, last)),
      'no CA of the trust bundle has signed it',
    ),
    ...unless(
      !chain.some((each) => each.ca && each.checkIssued(each) && each.verify(each.publicKey)),
      'the root is sent along',
    ),
  ];
}

export function notALeaf(leaf: X509Certificate): readonly string[] {
  const { extensions } = fieldsOf(leaf.raw);
  const found = extensions.map(({ oid }) => oid);
  const known = recipe.map(([oid]) => oid as string).filter((oid) => found.includes(oid));
  const constraints = extensions.find(({ oid }) => oid === '551d13');
  const bits = extensions.find(({ oid }) => oid === '551d0f')?.value;
  return [
    // X509Certificate.ca asks for keyCertSign as well, which other verifiers do not.
    ...unless(
      constraints?.critical === true && constraints.value.toString('hex') === '3000',
      `basicConstraints is ${constraints?.value.toString('hex') ?? 'absent'}, not 3000 and critical`,
    ),
    // keyCertSign and cRLSign are bits 5 and 6: 0x04 and 0x02 of the first octet of bits.
    ...unless(((bits?.[3] ?? 0) & 0x06) === 0, 'its key may sign certificates or CRLs'),
    ...unless(
      found.join() === known.join(),
      `its extensions are not those of the recipe, in order (${recipe.map(([, name]) => name).join(', ')})`,
    ),
  ];
}

/** A minute of difference between the endpoint's clock and ours is nobody's fault. */
const clockLeeway = 60_000;

export function wrongValidity(leaf: X509Certificate, anchors: readonly X509Certificate[]): readonly string[] {
  const now = Date.now();
  const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
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
