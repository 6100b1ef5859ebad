/**
 * Whether a certificate that another CA made, or that existed before, may be the certificate of a CA here (RFC 5280 §6.1, and what
 * Kubernetes' clients need below it). The operator's files are in their order; nothing is searched for.
 */
import type { ImportedCa } from '../../configuration/model/cluster.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { checkEach, checkOwn, decodeOne, isSelfIssued, timeText } from './certificates.ts';
import type { ImportFault } from './faults.ts';
import type { ImportedCertificates } from './files.ts';
import { namesIssuerKey } from './key-identifiers.ts';
import { checkLength, checkOrder, checkSignatures, nameAt } from './path.ts';

export interface CheckedImport {
  /** DER, as in a CaRecord. */
  readonly certificate: Uint8Array;
  readonly chain: readonly Uint8Array[];
  /** What the operator should know; sentences. */
  readonly notes: readonly string[];
}

/** `spki`: of the CA's key, DER. */
export async function checkImport(
  ca: ImportedCa,
  files: ImportedCertificates,
  spki: Uint8Array,
  now: Instant,
): Promise<Result<CheckedImport, ImportFault>> {
  const path: ChainCertificate[] = [];
  const given = [files.certificate, ...files.chain, ...(files.root === undefined ? [] : [files.root])];
  if (given.length > longestPath)
    return failure({ why: 'ChainTooLong', message: `${given.length} certificates were given` });
  for (const [index, der] of given.entries()) {
    const decoded = decodeOne(der, nameAt(index, files));
    if (!decoded.ok) return decoded;
    path.push(decoded.value);
  }
  const [own] = path;
  if (own === undefined) throw new RangeError('there is no certificate');
  const fault =
    checkOwn(ca, own, spki) ??
    checkOrder(path, files) ??
    first(path, (certificate, index) => checkEach(certificate, nameAt(index, files), now)) ??
    first(path, (certificate, index) => checkLength(certificate, index, ca, nameAt(index, files))) ??
    (await checkSignatures(path, files));
  if (fault !== undefined) return failure(fault);
  return success({
    certificate: files.certificate,
    chain: given.slice(1),
    notes: [...notesOf(ca, path), ...identifierNotes(path, files)],
  });
}

/** The CA, five CAs and the root. */
const longestPath = 7;

function first(
  path: readonly ChainCertificate[],
  check: (certificate: ChainCertificate, index: number) => ImportFault | undefined,
): ImportFault | undefined {
  for (const [index, certificate] of path.entries()) {
    const fault = check(certificate, index);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function notesOf({ name, pathLen }: ImportedCa, path: readonly ChainCertificate[]): readonly string[] {
  const [own, ...above] = path;
  if (own === undefined) return [];
  const earliest = Math.min(own.facts.notAfter, ...above.map(({ facts }) => facts.notAfter));
  const permitted = own.basicConstraints?.pathLength;
  const checks: readonly (readonly [holds: boolean, note: string])[] = [
    [
      own.permits('cRLSign'),
      `The certificate of ${name} lacks cRLSign: it signs no CRL, since relying parties would refuse it.`,
    ],
    [
      own.facts.notAfter <= earliest,
      `A CA above ${name} ends before it, at ${timeText(earliest)}: verifiers with that root refuse its certificates then.`,
    ],
    [
      permitted === pathLen,
      `The certificate of ${name} permits ${permitted ?? 'any number of'} CAs below it; the configuration says ${pathLen}.`,
    ],
  ];
  return checks.filter(([holds]) => !holds).map(([, note]) => note);
}

/** Certificates that exist cannot be changed, and Go, Node and OpenSSL by default do without these. */
function identifierNotes(path: readonly ChainCertificate[], files: ImportedCertificates): readonly string[] {
  return path.flatMap((certificate, index) => {
    const missing = [
      ...(certificate.facts.subjectKeyIdentifier === undefined ? ['subjectKeyIdentifier'] : []),
      ...(isSelfIssued(certificate) || namesIssuerKey(certificate) ? [] : ['authorityKeyIdentifier']),
    ];
    const name = nameAt(index, files);
    const subject = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
    return missing.map(
      (extension) => `${subject} lacks ${extension}: strict verifiers (Python from 3.13 on) refuse it.`,
    );
  });
}
