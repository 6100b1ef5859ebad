/** Whether the certificates of an import are one path, each issued by the next (RFC 5280 §6.1). @peculiar/x509 verifies the signatures. */
import 'reflect-metadata';
import { X509Certificate } from '@peculiar/x509';
import type { ImportedCa } from '../../configuration/model/cluster.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { same } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { isSelfIssued } from './certificates.ts';
import type { ImportFault } from './faults.ts';
import type { ImportedCertificates } from './files.ts';
import { namesOtherKey } from './key-identifiers.ts';

/** For messages. */
export function nameAt(index: number, { chain, root }: ImportedCertificates): string {
  if (index === 0) return 'the certificate of the CA';
  return root !== undefined && index > chain.length ? 'the root' : `certificate ${index} of the chain`;
}

/** Each certificate was issued by the next one, and the last one by itself. */
export function checkOrder(path: readonly ChainCertificate[], { root }: ImportedCertificates): ImportFault | undefined {
  const [own] = path;
  const last = path.at(-1);
  if (own === undefined || last === undefined) return undefined;
  if (isSelfIssued(own) && path.length > 1) {
    // The same file as certificate and as root is one certificate.
    return { why: 'ExtraCertificate', message: 'the CA is self-signed: it has no chain and no other root' };
  }
  if (root === undefined && !isSelfIssued(own))
    return { why: 'RootMissing', message: 'the CA is not self-signed: give the root to which its chain leads' };
  for (const [index, certificate] of path.entries()) {
    const rest = path.slice(index + 1);
    const isLast = rest.length === 0;
    const name = quoted(certificate.facts.subject);
    if (path.some((other, at) => at !== index && same(other.der, certificate.der)))
      return { why: 'ExtraCertificate', message: `certificate ${name} is given twice` };
    if (isLast && !isSelfIssued(certificate))
      return { why: 'RootNotSelfSigned', message: `the root ${name} names another issuer, so it is no root` };
    if (isLast) continue;
    if (rest.some((other) => same(other.facts.subjectName, certificate.facts.subjectName)))
      return { why: 'SameSubject', message: `two certificates of the path have the subject ${name}` };
    const issuers = path.filter((other) => same(other.facts.subjectName, certificate.facts.issuerName));
    if (rest[0] !== undefined && issuers.includes(rest[0])) continue;
    return missingIssuer(path, index, issuers);
  }
  return undefined;
}

function missingIssuer(
  path: readonly ChainCertificate[],
  index: number,
  issuers: readonly ChainCertificate[],
): ImportFault {
  const [certificate, next] = [path[index], path[index + 1]];
  const name = quoted(certificate?.facts.subject ?? '');
  const issuer = quoted(certificate?.facts.issuer ?? '');
  if (issuers.length === 0)
    return { why: 'ChainIncomplete', message: `the issuer of ${name}, ${issuer}, is not among the certificates` };
  // Is the next one on the path at all, as the issuer of another certificate?
  const isIssuer = path.some(
    ({ facts }) => next !== undefined && same(facts.issuerName, next.facts.subjectName) && facts !== next.facts,
  );
  return isIssuer
    ? { why: 'ChainOrder', message: `${name} is not followed by its issuer ${issuer}: order the chain, nearest first` }
    : { why: 'ExtraCertificate', message: `${quoted(next?.facts.subject ?? '')} issued none of the certificates` };
}

/** pathLen counts the CAs below a certificate (RFC 5280 §4.2.1.9): those of the chain, and those that the configuration permits. */
export function checkLength(
  { basicConstraints }: ChainCertificate,
  index: number,
  { pathLen }: ImportedCa,
  name: string,
): ImportFault | undefined {
  const permitted = basicConstraints?.pathLength;
  const needed = index + pathLen;
  return permitted === undefined || permitted >= needed
    ? undefined
    : { why: 'PathLength', message: `${name} permits ${permitted} CAs below it (pathLen), and ${needed} are needed` };
}

export async function checkSignatures(
  path: readonly ChainCertificate[],
  files: ImportedCertificates,
): Promise<ImportFault | undefined> {
  for (const [index, certificate] of path.entries()) {
    const issuer = path[index + 1] ?? certificate;
    const name = nameAt(index, files);
    const isSigned = await isSignedBy(certificate, issuer);
    if (!isSigned && issuer === certificate && files.root !== undefined)
      return { why: 'RootNotSelfSigned', message: `the root was not signed with its own key` };
    if (namesOtherKey(certificate, issuer)) {
      const message = isSigned
        ? 'names another key than the one that signed it'
        : 'was signed by a CA of the same name with another key';
      return { why: 'IssuerKeyMismatch', message: `${name} ${message} (authorityKeyIdentifier)` };
    }
    if (!isSigned) return { why: 'SignatureInvalid', message: `the signature of ${name} does not verify` };
  }
  return undefined;
}

async function isSignedBy({ der }: ChainCertificate, issuer: ChainCertificate): Promise<boolean> {
  try {
    const publicKey = new X509Certificate(new Uint8Array(issuer.der));
    return await new X509Certificate(new Uint8Array(der)).verify({ publicKey, signatureOnly: true });
  } catch {
    // The library throws if the key does not fit the algorithm.
    return false;
  }
}
