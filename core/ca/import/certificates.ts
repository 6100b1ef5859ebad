/** What each certificate of an import must be by itself, as the verifiers of its leaves will judge it. */
import 'reflect-metadata';
import { X509Certificate } from '@peculiar/x509';
import type { ImportedCa } from '../../configuration/model/cluster.ts';
import { elementIn } from '../../encoding/der-reader.ts';
import { failure } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { quoted } from '../../outcome/printable-text.ts';
import type { Instant } from '../../ports/instant.ts';
import { decodeRoot, keyNotAccepted, readKey, same, signatureProblem } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { decodeSubject } from '../../x509/distinguished-name.ts';
import { extensionType } from '../../x509/model.ts';
import type { ImportFault, ImportFaultName } from './faults.ts';
import { factsOf } from './files.ts';
import { namesIssuerKey } from './key-identifiers.ts';

/** `name`: for messages. */
export function decodeOne(der: Uint8Array, name: string): Result<ChainCertificate, ImportFault> {
  const facts = factsOf(der, name);
  if (!facts.ok) return facts;
  const { serialOctets, spki } = facts.value;
  const isPositive = (serialOctets[0] ?? 0x80) < 0x80 && serialOctets.some((octet) => octet !== 0);
  if (!isPositive || serialOctets.length > 20)
    return refuse('SerialNumber', `${name} has a serial number that is not positive or longer than 20 octets`);
  const signature = signatureProblem(facts.value);
  if (signature !== undefined) return refuse('SignatureAlgorithm', `${name} ${signature}`);
  if (readKey(spki) === undefined) return refuse('KeyNotAccepted', `${name} ${keyNotAccepted}`);
  const decoded = decodeRoot(der);
  if (!decoded.ok) return refuse('Unreadable', `${name} ${decoded.problem}`);
  const { subjectName, issuerName } = decoded.value.facts;
  if (!isReadableName(subjectName) || !isReadableName(issuerName))
    return refuse('Unreadable', `${name} has a subject or an issuer that cannot be read`);
  if (!isReadByLibrary(der)) return refuse('Unreadable', `${name} has an extension that cannot be read`);
  return decoded;
}

function isReadableName(name: Uint8Array): boolean {
  const element = elementIn(name);
  return element !== undefined && decodeSubject(element).ok;
}

/** Its known extensions, the ones too that nothing here judges: Go refuses a whole file of CAs for one that it cannot read. */
function isReadByLibrary(der: Uint8Array): boolean {
  try {
    return new X509Certificate(new Uint8Array(der)).extensions.length >= 0;
  } catch {
    return false;
  }
}

function refuse(why: ImportFaultName, message: string): Result<never, ImportFault> {
  return failure({ why, message });
}

/** What only the CA's own certificate must be. */
export function checkOwn(ca: ImportedCa, own: ChainCertificate, spki: Uint8Array): ImportFault | undefined {
  const name = 'the certificate of the CA';
  const { facts, permits } = own;
  if (!same(facts.spki, spki)) return { why: 'WrongKey', message: `${name} is not of the key of CA ${ca.name}` };
  const difference = subjectDifference(ca, own);
  if (difference !== undefined) return { why: 'SubjectMismatch', message: `${name} ${difference}` };
  const notCa = checkCaBit(own, name);
  if (notCa !== undefined) return notCa;
  // An existing certificate cannot be changed: kubeadm's lacks cRLSign, and openssl's lacks keyUsage.
  const isNew = ca.keyMaterial === 'kms';
  if (isNew && !facts.extensions.has(extensionType.keyUsage))
    return { why: 'NoKeyUsage', message: `${name} has no keyUsage: it needs keyCertSign and cRLSign` };
  // Leaves would name a CRL that cannot exist.
  const needsCrls = isNew || ca.crlDistributionPoint !== undefined;
  if (needsCrls && permits('keyCertSign') && !permits('cRLSign'))
    return { why: 'NoCrlSign', message: `the keyUsage of ${name} lacks cRLSign, so its CRLs would be refused` };
  if (isNew && facts.subjectKeyIdentifier === undefined)
    return { why: 'NoSubjectKeyIdentifier', message: `${name} has no subjectKeyIdentifier` };
  if (isNew && !isSelfIssued(own) && !namesIssuerKey(own))
    return {
      why: 'NoAuthorityKeyIdentifier',
      message: `${name} has no authorityKeyIdentifier with the key of its issuer`,
    };
  return undefined;
}

const configuredTypes = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
  country: '2.5.4.6',
};

/** CN, O, OU and C are as configured, or absent. Other attributes are the issuer's matter. */
function subjectDifference({ subject }: ImportedCa, { facts }: ChainCertificate): string | undefined {
  const element = elementIn(facts.subjectName);
  const read = element === undefined ? undefined : decodeSubject(element);
  if (read?.ok !== true) return 'has a subject that cannot be read';
  for (const [key, type] of Object.entries(configuredTypes)) {
    const wanted = subject[key as keyof typeof configuredTypes];
    const found = read.value.attributes.filter((attribute) => attribute.type === type).map(({ value }) => value);
    if (found.length === (wanted === undefined ? 0 : 1) && found[0] === wanted) continue;
    const configured = wanted === undefined ? 'none is configured' : `the configured one is ${quoted(wanted)}`;
    return `has the subject ${quoted(facts.subject)}, but of ${key} ${configured}`;
  }
  return undefined;
}

function checkCaBit({ basicConstraints, facts }: ChainCertificate, name: string): ImportFault | undefined {
  if (basicConstraints === undefined) return { why: 'NoBasicConstraints', message: `${name} has no basicConstraints` };
  if (!basicConstraints.isCa) return { why: 'NotCa', message: `${name} is not of a CA (basicConstraints)` };
  if (facts.extensions.get(extensionType.basicConstraints)?.critical !== true)
    return { why: 'NotCa', message: `${name} has basicConstraints that are not critical` };
  return undefined;
}

const nameConstraintsType = '2.5.29.30';
const purposes = { clientAuth: '1.3.6.1.5.5.7.3.2', serverAuth: '1.3.6.1.5.5.7.3.1' } as const;
const anyPurpose = '2.5.29.37.0';

const policyConstraintsType = '2.5.29.36';

/** What may be critical and is judged here, or only says where CRLs are. Go refuses critical key identifiers. */
const mayBeCritical: ReadonlySet<string> = new Set([
  extensionType.basicConstraints,
  extensionType.keyUsage,
  extensionType.extKeyUsage,
  extensionType.subjectAltName,
  extensionType.crlDistributionPoints,
]);

/** What holds for each certificate of the path, the root included, as verifiers of its leaves will judge them. */
export function checkEach(certificate: ChainCertificate, name: string, now: Instant): ImportFault | undefined {
  const { facts, permits, extKeyUsage } = certificate;
  const notCa = checkCaBit(certificate, name);
  if (notCa !== undefined) return notCa;
  if (elementIn(facts.subjectName)?.children.length === 0)
    return { why: 'NoSubject', message: `the subject of ${name} is empty` };
  if (!permits('keyCertSign')) return { why: 'NoCertSign', message: `the keyUsage of ${name} lacks keyCertSign` };
  for (const [purpose, oid] of Object.entries(purposes))
    if (extKeyUsage !== undefined && !extKeyUsage.includes(oid) && !extKeyUsage.includes(anyPurpose))
      return { why: 'ExtKeyUsage', message: `the extKeyUsage of ${name} forbids ${purpose} below it` };
  // Which names nodes will ask for is not known yet, and Go refuses constraints of kinds that it does not know.
  if (facts.extensions.has(nameConstraintsType))
    return {
      why: 'NameConstraints',
      message: `${name} constrains the names below it: verifiers would refuse certificates`,
    };
  // Leaves have no policies, so one that is required is always missing. Go judges this even if the extension is not critical.
  if (facts.extensions.has(policyConstraintsType))
    return { why: 'PolicyConstraints', message: `${name} constrains the policies of the certificates below it` };
  const unknown = [...facts.extensions].find(([type, { critical }]) => critical && !mayBeCritical.has(type))?.[0];
  if (unknown !== undefined)
    return {
      why: 'UnknownCriticalExtension',
      message: `${name} has the critical extension ${unknown}, which must not be critical or is not judged here`,
    };
  if (now < facts.notBefore)
    return { why: 'NotYetValid', message: `${name} is valid from ${timeText(facts.notBefore)} on` };
  if (now > facts.notAfter) return { why: 'Expired', message: `${name} expired at ${timeText(facts.notAfter)}` };
  return undefined;
}

export function isSelfIssued({ facts }: ChainCertificate): boolean {
  return same(facts.issuerName, facts.subjectName);
}

export function timeText(instant: Instant): string {
  return new Date(instant).toISOString();
}
