/**
 * What each signer permits. `rulesOf` is the whole policy: which rules, in which order, for which kind of signer. Before
 * them all: may this requester ask at all? A refusal collects every broken rule, the in-tree ones first, so that its message
 * starts with the in-tree text.
 * Where we differ from the in-tree signer, the number of the deviation in docs/signers.md stands at the rule.
 */
import type { ProfileAttestation } from './attestation-configuration.ts';
import type { CertificateRequest, KeyKind } from './csr.ts';
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
import type { AddressRange } from './patterns.ts';
import { atMost, printable, quoted, quotedList } from './quoted.ts';
import { matchesRequester } from './requester-patterns.ts';
import type { Reserved } from './reserved-names.ts';
import { unless } from './rule.ts';
import type { Question, Rule } from './rule.ts';
import { servesHostNames, servesNothingReserved } from './serving-rules.ts';
import { isInTree } from './signer-names.ts';
import { commonNameAllowed, namesNotReserved, namesSomebody, nodeName, organizationsAllowed } from './subject-rules.ts';
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
  /** Reserved common names and organizations that this signer may give all the same; never node names. */
  readonly allowReserved: readonly string[];
  readonly reserved: Reserved;
  /** Whom the subject may name. Signers of users and an operator's own; the kubelet signers have rules of their own. */
  readonly subject: SubjectLimits;
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
  /** Only for `kubelet-serving`: exact reserved subjectAltNames that it gives all the same; DNS names in lower case. */
  readonly allowReservedSans?: readonly string[];
  /** Only for `custom`. */
  readonly custom?: CustomRules;
}

/** Patterns of core/patterns.ts. None of them ever permits a reserved name. */
export interface SubjectLimits {
  /** Absent = any name that is not reserved; an operator's own signer always has both lists. */
  readonly commonNames?: readonly string[];
  readonly organizations?: readonly string[];
  readonly commonNameRequired?: true;
}

/** Patterns of core/patterns.ts; an empty list permits none of that kind. */
export interface CustomRules {
  readonly usages: { readonly allowed: readonly string[]; readonly required: readonly string[] };
  readonly sans: {
    readonly dns: readonly string[];
    readonly email: readonly string[];
    readonly ip: readonly AddressRange[];
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

/** Deviation 4: a name that is dropped silently leaves its requester with a certificate that does not work. */
const sanTypes: Rule = {
  check: 'subjectAltNames are DNS, email, IP or URI',
  code: 'SanNotPermitted',
  seen: ({ request }) => (request.sans.unsupported.length === 0 ? 'no others' : quotedList(request.sans.unsupported)),
  wrong: ({ request }) =>
    atMost(request.sans.unsupported, (type) => `a subjectAltName of type ${printable(type)} is not signed`),
};

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
        matchesRequester(requester, username, groups) ||
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
/** Of the built-in signers that leave the name to the requester. */
const userNames = [namesNotReserved, commonNameAllowed, organizationsAllowed, namesSomebody];

// ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────

const rulesOf: Readonly<Record<ProfileKind, readonly Rule[]>> = {
  // Their exact usages leave no room for empty or unknown ones, so `usagesKnown` is not asked again.
  'kube-apiserver-client': [...apiServerClientInTree, ...keys, ...userNames, sanTypes],
  'kube-apiserver-client-kubelet': [...kubeletClientInTree, ...keys, namesNotReserved, nodeName, sanTypes],
  'kubelet-serving': [
    ...kubeletServingInTree,
    ...keys,
    namesNotReserved,
    nodeName,
    sanTypes,
    servesHostNames,
    servesNothingReserved,
  ],
  'legacy-unknown': [...keys, ...userNames, sanTypes, usagesKnown],
  custom: [...keys, namesNotReserved, sanTypes, usagesKnown, ...customRules, namesSomebody],
};

/**
 * Every rule the request breaks, in order; empty when it may be signed. A requester whom the profile does not allow is told
 * that alone: the request costs nothing more, and they learn nothing of the other rules.
 */
export function checkProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Violation[] {
  const question = { profile, object, request };
  const stranger = violationsOf(requesterAllowed, question);
  return stranger.length > 0 ? stranger : rulesOf[profile.kind].flatMap((rule) => violationsOf(rule, question));
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
  const findingOf = (rule: Rule): Finding => ({
    check: rule.check,
    seen: rule.seen(question),
    violations: violationsOf(rule, question),
  });
  const first = findingOf(requesterAllowed);
  return first.violations.length > 0 ? [first] : [first, ...rulesOf[profile.kind].map(findingOf)];
}

function violationsOf(rule: Rule, question: Question): Violation[] {
  return rule.wrong(question).map((message) => violation(codeFor(question.profile, rule), message));
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
