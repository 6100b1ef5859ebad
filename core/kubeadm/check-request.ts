/**
 * Compares a request with kubeadm's profile of the certificate that it is for. Whatever kubeadm would not ask for is refused: nothing of
 * the request is dropped silently, so the certificate is what the request says.
 */
import type { KubeadmConfiguration } from '../configuration/model/cluster.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { atMost, printable, quoted, quotedList } from '../outcome/printable-text.ts';
import { extensionType } from '../x509/model.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { apiServerNames, etcdNames, kubeadmProfiles } from './certificates.ts';
import type { KubeadmCertificate, KubeadmProfile } from './certificates.ts';

export interface CheckedKubeadmRequest {
  readonly violations: readonly Violation[];
  /** The node that the certificate is for. */
  readonly node: string | undefined;
}

export function checkKubeadmRequest(
  name: KubeadmCertificate,
  request: CertificateRequest,
  settings: KubeadmConfiguration,
): CheckedKubeadmRequest {
  const profile: KubeadmProfile = kubeadmProfiles[name];
  const node = nodeOf(profile, request, settings);
  const violations = [
    ...checkKey(request),
    ...checkExtensions(request),
    ...checkSubject(profile, request, node),
    ...checkNames(profile, request, settings, node),
  ];
  return { violations, node };
}

/** The kinds of keys that kubeadm makes (`encryptionAlgorithm`). */
function checkKey({ publicKey: { kind, bits, description }, signatureHash }: CertificateRequest): Violation[] {
  const isKnown = (kind === 'RSA' && bits >= 2048 && bits <= 4096) || kind === 'P-256' || kind === 'P-384';
  const hash = signatureHash ?? 'no digest';
  return [
    ...unless(
      isKnown,
      'KeyNotPermitted',
      `key kind ${description} is not one of kubeadm’s (RSA 2048 to 4096, P-256, P-384)`,
    ),
    ...unless(
      ['SHA-256', 'SHA-384', 'SHA-512'].includes(hash),
      'KeyNotPermitted',
      `a self-signature with ${printable(hash)} is not permitted (SHA-256, SHA-384, SHA-512)`,
    ),
  ];
}

/** kubeadm asks for subjectAltNames only. The usages come from the profile. */
function checkExtensions({ requestedExtensions, evidence }: CertificateRequest): Violation[] {
  const others = requestedExtensions.filter((type) => type !== extensionType.subjectAltName);
  return [
    ...atMost(others, (type) => `kubeadm does not ask for extension ${printable(type)}`).map((message) =>
      violation('UsageNotPermitted', message),
    ),
    ...unless(evidence.length === 0, 'RequestMalformed', 'there is more than a certificate request in the file'),
  ];
}

function checkSubject(
  { commonName, organizations, ofNode }: KubeadmProfile,
  { subject }: CertificateRequest,
  node: string | undefined,
): Violation[] {
  const wanted = ofNode === 'subject' ? `${commonName}${node ?? ''}` : commonName;
  const isWanted = subject.commonName === wanted && (ofNode !== 'subject' || node !== undefined);
  const expected = ofNode === 'subject' ? `${commonName}<a node of kubeadm.nodes>` : commonName;
  const expectedGroups = organizations.length === 0 ? 'no organization' : `O ${quotedList(organizations)}`;
  return [
    ...unless(
      isWanted,
      'SubjectNotPermitted',
      `common name ${quoted(subject.commonName)} is not that of kubeadm (${expected})`,
    ),
    ...unless(
      // No name holds a control character.
      subject.organizations.join('\n') === organizations.join('\n'),
      'SubjectNotPermitted',
      `organizations ${quotedList(subject.organizations)} are not those of kubeadm (${expectedGroups})`,
    ),
    ...unless(
      subject.attributes.length === 1 + organizations.length,
      'SubjectNotPermitted',
      'the subject has attributes that kubeadm does not give',
    ),
  ];
}

function checkNames(
  { serves, ofNode }: KubeadmProfile,
  { sans }: CertificateRequest,
  settings: KubeadmConfiguration,
  node: string | undefined,
): Violation[] {
  const { dns, ip, email, uri, unsupported } = sans;
  const asked = [...dns.map((name) => name.toLowerCase()), ...ip];
  const strange = [...email, ...uri, ...unsupported];
  const { always, permitted } = namesOf(serves, settings, node);
  const wrong = [...asked.filter((name) => !always.includes(name) && !permitted.includes(name)), ...strange];
  const missing = always.filter((name) => !asked.includes(name));
  return [
    ...unless(
      ofNode !== 'names' || node !== undefined,
      'SanNotPermitted',
      'its DNS names must hold exactly one name of a node in kubeadm.nodes',
    ),
    ...atMost(wrong, (name) => `subjectAltName ${quoted(name)} is not permitted for this certificate`).map((message) =>
      violation('SanNotPermitted', message),
    ),
    ...unless(missing.length === 0, 'SanNotPermitted', `kubeadm’s subjectAltNames ${quotedList(missing)} are missing`),
  ];
}

/** `always`: kubeadm gives them to each such certificate. `permitted`: further ones, by the configuration. */
function namesOf(
  serves: KubeadmProfile['serves'],
  { apiServerNames: shared, nodes, clusterDomain }: KubeadmConfiguration,
  node: string | undefined,
): { readonly always: readonly string[]; readonly permitted: readonly string[] } {
  const ofNode = nodes.find(([name]) => name === node)?.[1] ?? [];
  const own = node === undefined ? [] : [node];
  switch (serves) {
    case undefined:
      return { always: [], permitted: [] };
    case 'apiServer':
      return { always: [...apiServerNames(clusterDomain), ...own], permitted: [...shared, ...ofNode] };
    case 'etcd':
      return { always: [...etcdNames, ...own], permitted: ofNode };
  }
}

function nodeOf(
  { commonName, ofNode }: KubeadmProfile,
  { subject, sans }: CertificateRequest,
  { nodes }: KubeadmConfiguration,
): string | undefined {
  const known = nodes.map(([name]) => name);
  if (ofNode === 'subject') return known.find((name) => subject.commonName === `${commonName}${name}`);
  const found = known.filter((name) => sans.dns.includes(name));
  // With two of them, one API server could stand for the other.
  return found.length === 1 ? found[0] : undefined;
}

function unless(holds: boolean, code: Violation['code'], message: string): Violation[] {
  return holds ? [] : [violation(code, message)];
}
