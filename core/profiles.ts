/**
 * What each signer permits. `rulesOf` is the whole policy: which rules, in which order, for which kind of signer.
 * A refusal collects every broken rule, the in-tree ones first, so that its message starts with the in-tree text.
 * Where we differ from the in-tree signer, the number of the deviation in docs/signers.md stands at the rule.
 */
import type { ProfileAttestation } from './attestation-configuration.ts';
import type { CertificateRequest, KeyKind, Subject, SubjectAltNames } from './csr.ts';
import { customRules } from './custom-rules.ts';
import {
  apiServerClientInTree,
  kubeletClientInTree,
  kubeletServingInTree,
  nodesGroup,
  nodeUserPrefix,
} from './in-tree-rules.ts';
import type { InTreeRule } from './in-tree-rules.ts';
import type { RequestObject } from './kubernetes.ts';
import { violation } from './outcome.ts';
import type { RefusalCode, Violation } from './outcome.ts';
import { isSubdomain, nameMatches } from './patterns.ts';
import { atMost, printable, quoted, quotedList } from './quoted.ts';
import { unless } from './rule.ts';
import type { Question, Rule } from './rule.ts';
import { isInTree } from './signer-names.ts';
import { encodeSubject } from './subject.ts';
import { isKnownUsage } from './usages.ts';

/** The rule sets a signer can follow; the four in-tree ones are fixed by Kubernetes, `custom` by the operator. */
export type ProfileKind =
  'kube-apiserver-client' | 'kube-apiserver-client-kubelet' | 'kubelet-serving' | 'legacy-unknown' | 'custom';

/** What one signer permits, resolved: every default filled in, every pattern checked. Made by core/configuration.ts. */
export interface Profile {
  readonly signerName: string;
  readonly kind: ProfileKind;
  /** The CA's name in the same cluster. */
  readonly ca: string;
  /** At least 60. */
  readonly maxTtlSeconds: number;
  readonly keys: readonly KeyKind[];
  /** `system:` common names and organizations this profile may give; never node names. Empty unless configured. */
  readonly systemNames: readonly string[];
  /**
   * Patterns of core/patterns.ts; one match among users or groups is enough.
   * Both empty = anybody whom the approver let through.
   */
  readonly requester: {
    readonly users: readonly string[];
    readonly groups: readonly string[];
    /** Besides them exactly the node itself: user `system:node:<CN>` with group `system:nodes`. */
    readonly nodeItself?: true;
  };
  readonly attestation?: ProfileAttestation;
  /** A key that was certified before is refused (`KeyReused`). */
  readonly freshKeys?: true;
  /** Only for `custom`. */
  readonly custom?: CustomRules;
}

/** Patterns of core/patterns.ts; an empty list permits none of that kind. None of them ever permits a `system:` name. */
export interface CustomRules {
  readonly usages: { readonly allowed: readonly string[]; readonly required: readonly string[] };
  readonly subject: {
    readonly commonNames: readonly string[];
    readonly organizations: readonly string[];
    readonly commonNameRequired: boolean;
  };
  readonly sans: {
    readonly dns: readonly string[];
    readonly email: readonly string[];
    /** CIDRs. */
    readonly ip: readonly string[];
    readonly uri: readonly string[];
    /** At least one name of any type. */
    readonly required: boolean;
  };
}

// ── Ours, for every signer ──────────────────────────────────────────────────────────────────────────────────────────

/** Deviation 2. The profile says which kinds; a kind without a name here (P-224, DSA …) is in no profile. */
const keyKind: Rule = {
  check: 'the profile permits this kind of key',
  code: 'KeyNotPermitted',
  seen: ({ request }) => request.publicKey.description,
  wrong: ({ profile, request: { publicKey } }) =>
    unless(
      publicKey.kind !== undefined && profile.keys.includes(publicKey.kind),
      `key kind ${publicKey.description} is not permitted (${profile.keys.join(', ')})`,
    ),
};

/** Deviation 2. Above 8192 bits a verifier's time is the attacker's to spend; Go's TLS refuses such keys too. */
const rsaSize: Rule = {
  check: 'an RSA key has 2048 to 8192 bits',
  code: 'KeyNotPermitted',
  seen: ({ request }) => request.publicKey.description,
  wrong: ({ request: { publicKey } }) =>
    unless(
      publicKey.kind !== 'RSA' || (publicKey.bits >= 2048 && publicKey.bits <= 8192),
      `an RSA key of ${publicKey.bits} bits is not permitted (2048 to 8192)`,
    ),
};

/** Deviation 2. Collisions of SHA-1 and MD5 are for sale: such a self-signature may have been made for other content. */
const signatureHash: Rule = {
  check: 'the self-signature uses SHA-256, SHA-384, SHA-512 or Ed25519',
  code: 'KeyNotPermitted',
  seen: ({ request }) => request.signatureHash ?? request.publicKey.description,
  wrong: ({ request: { signatureHash: hash, publicKey } }) =>
    unless(
      hash === undefined ? publicKey.kind === 'Ed25519' : ['SHA-256', 'SHA-384', 'SHA-512'].includes(hash),
      `a self-signature with ${printable(hash ?? 'an unknown digest')} is not permitted (SHA-256, SHA-384, SHA-512, Ed25519)`,
    ),
};

/**
 * Deviations 3 and 7: whoever holds a certificate with such a name *is* that user or group to the API server, and
 * some of them (system:masters) stand above all authorization.
 */
const reservedNames: Rule = {
  check: 'no reserved name (system:…) beyond those this signer may give',
  code: 'NameReserved',
  seen: ({ request: { subject } }) => `CN ${quoted(subject.commonName)}, O ${quotedList(subject.organizations)}`,
  wrong: ({ profile, request: { subject } }) => [
    ...unless(
      mayGive(profile, 'CN', subject.commonName),
      `common name ${quoted(subject.commonName)} is reserved and not given by this signer`,
    ),
    ...atMost(
      subject.organizations.filter((organization) => !mayGive(profile, 'O', organization)),
      (organization) => `organization ${quoted(organization)} is reserved and not given by this signer`,
    ),
  ],
};

/** The only two signers that may say who is a node. */
const nodeSigners: ReadonlySet<ProfileKind> = new Set(['kube-apiserver-client-kubelet', 'kubelet-serving']);

function mayGive(profile: Profile, place: 'CN' | 'O', name: string): boolean {
  if (!name.startsWith('system:')) return true;
  // Node names first: no configuration can make another signer give them.
  if (name.startsWith(nodeUserPrefix)) return place === 'CN' && nodeSigners.has(profile.kind);
  if (name === nodesGroup) return place === 'O' && nodeSigners.has(profile.kind);
  return profile.systemNames.includes(name);
}

/** Deviation 9: `system:node:` followed by nothing, or by what no Node object can be called, is nobody's identity. */
const nodeName: Rule = {
  check: 'the node name is one a Node can have',
  code: 'NameReserved',
  seen: ({ request }) => quoted(request.subject.commonName),
  wrong: ({ request: { subject } }) =>
    unless(
      !subject.commonName.startsWith(nodeUserPrefix) || isSubdomain(subject.commonName.slice(nodeUserPrefix.length)),
      `common name ${quoted(subject.commonName)} does not name a node`,
    ),
};

/** Deviation 4: a name that is dropped silently leaves its requester with a certificate that does not work. */
const sanTypes: Rule = {
  check: 'subjectAltNames are DNS, email, IP or URI',
  code: 'SanNotPermitted',
  seen: ({ request }) => (request.sans.unsupported.length === 0 ? 'no others' : quotedList(request.sans.unsupported)),
  wrong: ({ request }) =>
    atMost(request.sans.unsupported, (type) => `a subjectAltName of type ${printable(type)} is not signed`),
};

/** Deviation 12: neither RFC 5280 (§4.1.2.6) nor any verifier knows a use for a certificate without any name. */
const namesSomebody: Rule = {
  check: 'the subject or a subjectAltName names somebody',
  code: 'SubjectNotPermitted',
  seen: ({ request: { subject, sans } }) =>
    `${hasSubject(subject) ? 'a subject' : 'no subject'}, ${hasNames(sans) ? 'subjectAltNames' : 'no subjectAltNames'}`,
  wrong: ({ request: { subject, sans } }) =>
    unless(
      hasSubject(subject) || hasNames(sans),
      'the certificate would name nobody: it has neither a subject nor a subjectAltName',
    ),
};

/** What the certificate will carry: an emailAddress alone leaves nothing. An empty SEQUENCE takes two octets. */
function hasSubject(subject: Subject): boolean {
  return encodeSubject(subject).length > 2;
}

function hasNames({ dns, email, ip, uri }: SubjectAltNames): boolean {
  return [dns, email, ip, uri].some((names) => names.length > 0);
}

/** Deviations 7 and 8. A certificate without extended usages is valid for all of them (RFC 5280 §4.2.1.12). */
const usagesKnown: Rule = {
  check: 'usages are present and known',
  code: 'UsageNotPermitted',
  seen: ({ object }) => quotedList(object.usages),
  wrong: ({ object: { usages } }) => [
    ...unless(usages.length > 0, 'usages are empty'),
    ...atMost(
      usages.filter((usage) => !isKnownUsage(usage)),
      (usage) => `usage ${quoted(usage)} is unknown`,
    ),
  ],
};

const requesterAllowed: Rule = {
  check: 'the requester is one the profile names, if it names any',
  code: 'RequesterNotAllowed',
  seen: ({ object }) => `${quoted(object.username)}, groups ${quotedList(object.groups)}`,
  wrong: (question) => {
    const { requester } = question.profile;
    const { username, groups } = question.object;
    return unless(
      (requester.users.length === 0 && requester.groups.length === 0 && requester.nodeItself !== true) ||
        requester.users.some((pattern) => nameMatches(pattern, username)) ||
        requester.groups.some((pattern) => groups.some((group) => nameMatches(pattern, group))) ||
        (requester.nodeItself === true && isNodeItself(question)),
      `requester ${quoted(username)} is none of those this signer answers`,
    );
  },
};

/** Exactly the node the certificate is for: a node's credential is worth nothing for the name of another. */
function isNodeItself({ object: { username, groups }, request: { subject } }: Question): boolean {
  return username.startsWith(nodeUserPrefix) && username === subject.commonName && groups.includes(nodesGroup);
}

const keys = [keyKind, rsaSize, signatureHash];

// ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────

const rulesOf: Readonly<Record<ProfileKind, readonly Rule[]>> = {
  // Their exact usages leave no room for empty or unknown ones, so `usagesKnown` is not asked again.
  'kube-apiserver-client': [
    ...apiServerClientInTree,
    ...keys,
    reservedNames,
    namesSomebody,
    sanTypes,
    requesterAllowed,
  ],
  'kube-apiserver-client-kubelet': [
    ...kubeletClientInTree,
    ...keys,
    reservedNames,
    nodeName,
    sanTypes,
    requesterAllowed,
  ],
  'kubelet-serving': [...kubeletServingInTree, ...keys, reservedNames, nodeName, sanTypes, requesterAllowed],
  'legacy-unknown': [...keys, reservedNames, namesSomebody, sanTypes, usagesKnown, requesterAllowed],
  custom: [...keys, reservedNames, sanTypes, usagesKnown, ...customRules, namesSomebody, requesterAllowed],
};

/** Every rule the request breaks, in order; empty when it may be signed. */
export function checkProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Violation[] {
  return rulesOf[profile.kind].flatMap((rule) =>
    rule.wrong({ profile, object, request }).map((message) => violation(codeFor(profile, rule), message)),
  );
}

export interface Finding {
  readonly check: string;
  readonly seen: string;
  /** Empty = passed. */
  readonly violations: readonly Violation[];
}

/** The same rules in the same order, those that hold included. */
export function explainProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Finding[] {
  const question = { profile, object, request };
  return rulesOf[profile.kind].map((rule) => ({
    check: rule.check,
    seen: rule.seen(question),
    violations: rule.wrong(question).map((message) => violation(codeFor(profile, rule), message)),
  }));
}

/** The in-tree reason only where the in-tree signer would give it. The texts are the same. */
function codeFor(profile: Profile, rule: Rule): RefusalCode {
  return isInTree(profile) ? rule.code : (rule.codeElsewhere ?? rule.code);
}

/**
 * The signer of a v1beta1 request that names none, as the API server defaults it (pkg/apis/certificates/v1beta1/
 * defaults.go): by the in-tree rules alone, so that ours can then refuse it under the right name.
 */
export function defaultSignerName(object: RequestObject, request: CertificateRequest): string {
  const passes = (rules: readonly InTreeRule[]): boolean =>
    rules.every((rule) => rule.wrong({ object, request }).length === 0);
  if (passes(kubeletClientInTree)) return 'kubernetes.io/kube-apiserver-client-kubelet';
  if (passes(kubeletServingInTree)) return 'kubernetes.io/kubelet-serving';
  return 'kubernetes.io/legacy-unknown';
}
