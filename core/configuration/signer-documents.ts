/**
 * The documentation that every signer must provide (Kubernetes' Certificates API design, "signers should provide information
 * about how they work"): seven headings for each signer, and what happens to other requests. It is generated from the resolved
 * profiles, so it cannot differ from the rules.
 */
import { counted } from '../outcome/counted.ts';
import type { ClusterReference } from './model/attestation.ts';
import type { ClusterConfiguration } from './model/cluster.ts';
import { denyAll } from '../policy/custom-rules.ts';
import type { RefusalCode } from '../outcome/outcome.ts';
import type { Profile, ProfileKind } from '../policy/profile.ts';
import { controlPlaneNames } from '../policy/reserved-names.ts';
import { isInTree, isNodeSigner, permitsClientCertificates } from '../policy/signer-names.ts';
import { maxSubjectAltNames } from '../x509/subject-alt-names.ts';

/** Markdown, one chapter per signer, in the order of the configuration. */
export function signerDocuments(cluster: ClusterConfiguration): string {
  return [...cluster.profiles.values()].map((profile) => document(profile, cluster)).join('\n');
}

function document(profile: Profile, { name, cas, approval, attestation }: ClusterConfiguration): string {
  const anchor = cas.get(profile.ca)?.kind === 'selfSigned' || permitsClientCertificates(profile) ? '' : 'the root of ';
  const trust = `${anchor}CA \`${profile.ca}\` (\`GET /v1/clusters/${name}/trust-bundles\`; during a rotation old and new)`;
  const approved = approval.get(profile.signerName) === 'approve';
  const { purpose, honoured, subjects, extensions, usages } = texts(profile);
  return `## ${profile.signerName}

${purpose} ${approved ? approvalText(profile) : 'Countersign never approves its requests.'} ${requesterText(profile)} ${keysText(profile)}${attestationText(profile, attestation?.clusterApi)}

### Trust distribution

${honoured.replace('{trust}', trust)}

### Permitted subjects

${subjects}

### Permitted x509 extensions

${extensions} A name of any other type (otherName, directoryName, registeredID …) is refused by name, \`SanNotPermitted\`; more than ${maxSubjectAltNames} names of all types together are refused, \`RequestTooLarge\`. Other requested extensions are dropped: the certificate never carries them.

### Permitted key usages and extended key usages

${usages}

### Expiration and certificate lifetime

At most ${durationText(profile.maxTtlSeconds)}, which is also the lifetime without \`expirationSeconds\`. A longer \`expirationSeconds\` is reduced to it; no lifetime is shorter than ${durationText(Math.min(600, profile.maxTtlSeconds))}. Validity begins 5 minutes before signing; a lifetime of 8 hours or more includes these 5 minutes. No certificate outlives its CA.

### CA bit

Never set. A request for a CA certificate gets a certificate with \`CA:FALSE\`; its basicConstraints extension is dropped.

### Further CERTIFICATE blocks

As usual in \`status.certificate\`: the first block is the certificate, those after it are intermediates to present in TLS handshakes. The root is never among them; with a self-signed CA there is one block.
`;
}

interface Texts {
  readonly purpose: string;
  readonly honoured: string;
  readonly subjects: string;
  readonly extensions: string;
  readonly usages: string;
}

const clientTrust = `Certificates are honoured as client certificates by the kube-apiserver, whose \`--client-ca-file\` holds {trust}. In the cluster the watch-relay distributes the CA bundle if this is switched on.`;

/** Permitted subjects of the built-in signers that let the requester choose the name. */
function userSubjects(profile: Profile): string {
  return `${subjectLimits(profile)}
- other attributes: C, ST, L, street, postalCode, OU and serialNumber are honoured, others are dropped

Anything else is refused, \`SubjectNotPermitted\`, and so is a certificate that would have neither a subject nor a subjectAltName. ${reservedText(profile)}`;
}

function subjectLimits({ subject: { commonNames, organizations, commonNameRequired } }: Profile): string {
  const list = (values: readonly string[] | undefined): string =>
    values === undefined ? 'any that is not reserved' : patterns(values);
  return `- common name: ${list(commonNames)}${commonNameRequired === true ? '; required' : ''}
- organizations: ${list(organizations)}`;
}

function texts(profile: Profile): Texts {
  /** In-tree signers refuse with the in-tree code, other signers with `own`. */
  const code = (own: RefusalCode): string => `\`${isInTree(profile) ? 'SignerValidationFailure' : own}\``;
  const nodeSubjects = `The organization is exactly \`system:nodes\`, the common name is \`system:node:\` and the name of a node. Otherwise refused: ${code('SubjectNotPermitted')}, and \`NameReserved\` for a name that no Node can have.`;
  const inTree: Readonly<Record<Exclude<ProfileKind, 'custom'>, Texts>> = {
    'kube-apiserver-client': {
      purpose: 'Signs client certificates for the kube-apiserver.',
      honoured: clientTrust,
      subjects: userSubjects(profile),
      extensions: 'DNS, email, IP and URI subjectAltNames are honoured.',
      usages: `Must hold \`client auth\`; may hold \`digital signature\` and \`key encipherment\`. Anything else is refused: \`SignerValidationFailure\`, \`invalid usage for client certificate: …\`.`,
    },
    'kube-apiserver-client-kubelet': {
      purpose: 'Signs client certificates with which kubelets log in to the kube-apiserver.',
      honoured: clientTrust,
      subjects: nodeSubjects,
      extensions: `None: a request with DNS, email, IP or URI subjectAltNames is refused, ${code('SanNotPermitted')}, \`… subjectAltNames are not allowed\`.`,
      usages: `Exactly \`client auth\` and \`digital signature\`, with or without \`key encipherment\`. Anything else is refused: ${code('UsageNotPermitted')}, \`usages did not match …\`.`,
    },
    'kubelet-serving': {
      purpose: 'Signs the serving certificates of kubelets.',
      honoured: `Certificates are honoured by the kube-apiserver as serving certificates of kubelets if its \`--kubelet-certificate-authority\` holds {trust}. In the cluster the watch-relay distributes the CA bundle if this is switched on.`,
      subjects: nodeSubjects,
      extensions: `DNS and IP subjectAltNames are honoured, and at least one is required. A request without one, or with email or URI subjectAltNames, is refused: ${code('SanNotPermitted')}. ${neverServed(profile)}${profile.attestation === undefined ? '' : ' Each must belong to the machine that sends the request: its platform reports it, or it is the first use of an address in the operator’s ranges. Otherwise refused, `NameNotOwned`.'}`,
      usages: `Exactly \`server auth\` and \`digital signature\`, with or without \`key encipherment\`. Anything else is refused: ${code('UsageNotPermitted')}, \`usages did not match …\`.`,
    },
    'legacy-unknown': {
      purpose: 'Has no purpose of its own; only requests made through the v1beta1 API can carry it.',
      honoured: 'None is promised. The CA is {trust}; the operator decides where it is trusted.',
      subjects: userSubjects(profile),
      extensions: 'DNS, email, IP and URI subjectAltNames are honoured.',
      usages:
        'One or more known usages. A request without usages or with an unknown one is refused, `UsageNotPermitted`.',
    },
  };
  return profile.kind === 'custom' ? customTexts(profile) : inTree[profile.kind];
}

/** The names that no kubelet may serve under, on any machine. */
function neverServed({ reserved: { names, addresses, clusterDomain }, allowReservedSans = [] }: Profile): string {
  const own = [...names, ...addresses.map(({ text }) => text)];
  return `Wildcards, DNS names that are not host names and DNS names that look like addresses are refused, \`SanNotPermitted\`. Also refused, \`NameReserved\`: names of the control plane, of services (\`*.svc\`, \`*.default\` …), of loopback and of the cloud’s metadata; \`${clusterDomain}\` and names in it; addresses that no node may have (loopback, link-local, multicast …)${own.length === 0 ? '' : `; names and addresses that the cluster reserves (${patterns(own)})`}.${allowReservedSans.length === 0 ? '' : ` This signer issues ${patterns(allowReservedSans)} nevertheless.`}`;
}

function customTexts(profile: Profile): Texts {
  const { usages, sans } = profile.custom ?? denyAll;
  const lists = [
    ['DNS names', sans.dns],
    ['email addresses', sans.email],
    ['IP addresses', sans.ip.map(({ text }) => text)],
    ['URIs', sans.uri],
  ] as const;
  return {
    purpose: 'Signs for the purpose that its operator chose.',
    honoured:
      'By every verifier that trusts {trust}. In the cluster the watch-relay distributes the CA bundle if this is switched on.',
    subjects: `${subjectLimits(profile)}
- no other attributes, and at most one common name

Anything else is refused, \`SubjectNotPermitted\`, and so is a certificate that would have neither a subject nor a subjectAltName. ${reservedText(profile)}`,
    extensions: `${sans.required ? 'At least one subjectAltName' : 'SubjectAltNames'} of these:

${lists.map(([label, values]) => `- ${label}: ${patterns(values)}`).join('\n')}

Anything else is refused, \`SanNotPermitted\`.`,
    usages: `Any of ${patterns(usages.allowed)}, at least one extended usage among them.${
      usages.required.length > 0 ? ` Required: ${patterns(usages.required)}.` : ''
    } Anything else is refused, \`UsageNotPermitted\`.`,
  };
}

function reservedText({ reserved: { names }, allowReserved }: Profile): string {
  const given = allowReserved.length > 0 ? `only ${patterns(allowReserved)} of those` : 'none of those';
  return `The API server or another part of the control plane grants rights to reserved names; this signer issues ${given}, and refuses the others, \`NameReserved\`. These names are reserved, in upper and lower case: ${patterns([...controlPlaneNames, ...names])}.`;
}

function requesterText({ requester: { users, groups, nodeItself } }: Profile): string {
  if (users.length + groups.length === 0 && nodeItself !== true)
    return 'Any requester may use it; the request must be approved.';
  const named = [
    ...(users.length > 0 ? [`the users ${patterns(users)}`] : []),
    ...(groups.length > 0 ? [`members of the groups ${patterns(groups)}`] : []),
    ...(nodeItself === true ? ['the node itself (user `system:node:<name>` in group `system:nodes`)'] : []),
  ];
  return `Only ${named.join(' and ')} may use it; others are refused, \`RequesterNotAllowed\`.`;
}

/** What the relay checks before it approves a request. */
function approvalText({ attestation, ...profile }: Profile): string {
  const denied = 'and denied if these rules refuse it';
  if (attestation?.mode === 'enforce' && attestation.required)
    return `A request is approved by the watch-relay with evidence of the machine${attestation.subjectAccessReview ? ' and after a SubjectAccessReview' : ''}, ${denied}.`;
  if (isNodeSigner(profile)) return `A request is approved by the watch-relay after a SubjectAccessReview, ${denied}.`;
  return `A request is approved by the watch-relay, ${denied}.`;
}

function keysText({ keys: kinds, freshKeys }: Profile): string {
  const fresh = freshKeys === true ? ' A key that was certified before is refused, `KeyReused`.' : '';
  return `Keys: ${kinds.map(keyText).join(', ')}; anything else is refused, \`KeyNotPermitted\`.${fresh}`;
}

/** A separate paragraph; empty for signers without attestation. */
function attestationText({ kind, attestation }: Profile, clusterApi: ClusterReference | undefined): string {
  if (attestation === undefined) return '';
  const { providers, required, mode } = attestation;
  const wanted = `evidence of ${providers.map((provider) => `\`${provider}\``).join(' or ')}`;
  const recorded = kind === 'kubelet-serving' ? ', or comes from a node whose machine is on record' : '';
  const need = required
    ? `Demands attestation: the request holds ${wanted}${recorded}.`
    : `Attests a request that holds ${wanted}${recorded}; another request is handled as without attestation.`;
  const effect = providers.includes('insecure')
    ? 'The evidence proves nothing: only the first requester of a node name gets it, without renewal.'
    : kind === 'kubelet-serving'
      ? 'The machine must be the one that has the node name.'
      : 'The first attested machine with a node name keeps the name.';
  const behind =
    clusterApi === undefined
      ? ''
      : ` A Machine or MachinePool of Cluster \`${clusterApi.namespace}/${clusterApi.cluster}\` must stand behind the machine.`;
  const codes = clusterApi === undefined ? '' : ', `Machine…`, `AttestorNotAuthorized`';
  return mode === 'audit'
    ? `\n\n${need}${behind} Failures are only counted (audit mode) and refuse nothing.`
    : `\n\n${need} ${effect}${behind} Otherwise refused: \`Attestation…\`, \`IdentityNotAllowed\`, \`Tofu…\`, \`Revoked\`${codes}.`;
}

function patterns(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.map((value) => `\`${value}\``).join(', ');
}

function keyText(kind: Profile['keys'][number]): string {
  return kind === 'RSA' ? 'RSA (2048 to 8192 bits)' : kind;
}

function durationText(seconds: number): string {
  const units = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
  ] as const;
  const [size, unit] = units.find(([unitSize]) => seconds % unitSize === 0) ?? [1, 'second'];
  return counted(seconds / size, unit);
}
