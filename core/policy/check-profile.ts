/**
 * What each signer permits. `rulesOf` is the whole policy: the rules of each kind of signer, in order. The requester is checked
 * before all other rules. A refusal lists every violated rule, the in-tree rules first, so that its message starts with the
 * in-tree text. Rules that differ from the in-tree signer name the deviation in docs/signers.md.
 */
import { keyKind, rsaSize, signatureHash, sanTypes, usagesKnown, requesterAllowed } from './general-rules.ts';
import type { ProfileKind, Profile } from './profile.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { customRules } from './custom-rules.ts';
import { apiServerClientInTree, kubeletClientInTree, kubeletServingInTree } from './in-tree-rules.ts';
import type { InTreeRule } from './in-tree-rules.ts';
import type { RequestObject } from '../kubernetes/certificate-signing-request.ts';
import { violation } from '../outcome/outcome.ts';
import type { RefusalCode, Violation } from '../outcome/outcome.ts';
import type { Question, Rule } from './rule.ts';
import { servesHostNames, servesNothingReserved } from './serving-rules.ts';
import { isInTree } from './signer-names.ts';
import { commonNameAllowed, namesNotReserved, hasName, nodeName, organizationsAllowed } from './subject-rules.ts';

// ── Our own rules, for every signer ──────────────────────────────────────────────────────────────────────────────────────────

const keys = [keyKind, rsaSize, signatureHash];
/** For the built-in signers that let the requester choose the name. */
const userNames = [namesNotReserved, commonNameAllowed, organizationsAllowed, hasName];

// ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────

const rulesOf: Readonly<Record<ProfileKind, readonly Rule[]>> = {
  // The rules of the first three permit only fixed usages, so they do not need `usagesKnown`.
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
  custom: [...keys, namesNotReserved, sanTypes, usagesKnown, ...customRules, hasName],
};

/**
 * The violations of all rules, in order; empty if the request may be signed. If the profile does not allow the requester, the
 * other rules are not checked, so the requester learns nothing about them.
 */
export function checkProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Violation[] {
  const question = { profile, object, request };
  const requester = violationsOf(requesterAllowed, question);
  return requester.length > 0 ? requester : rulesOf[profile.kind].flatMap((rule) => violationsOf(rule, question));
}

export interface Finding {
  readonly check: string;
  readonly observed: string;
  /** False if neither the request nor the profile has what the rule is about. Then it has no violations. */
  readonly applies: boolean;
  /** Empty if the request passed. */
  readonly violations: readonly Violation[];
}

/** The results of the same rules in the same order, passed rules included. */
export function explainProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Finding[] {
  const question = { profile, object, request };
  const findingOf = (rule: Rule): Finding => ({
    check: rule.check,
    observed: rule.observed(question),
    applies: rule.applies?.(question) ?? true,
    violations: violationsOf(rule, question),
  });
  const first = findingOf(requesterAllowed);
  return first.violations.length > 0 ? [first] : [first, ...rulesOf[profile.kind].map(findingOf)];
}

function violationsOf(rule: Rule, question: Question): Violation[] {
  return rule.violations(question).map((message) => violation(codeFor(question.profile, rule), message));
}

/** In-tree signers have the in-tree code, other signers `codeElsewhere`. The texts are the same. */
function codeFor(profile: Profile, rule: Rule): RefusalCode {
  return isInTree(profile) ? rule.code : (rule.codeElsewhere ?? rule.code);
}

/**
 * The default signer of a v1beta1 request, as in the API server (pkg/apis/certificates/v1beta1/defaults.go). It follows from
 * the in-tree rules only; the other rules may then refuse the request.
 */
export function defaultSignerName(object: RequestObject, request: CertificateRequest): string {
  const passes = (rules: readonly InTreeRule[]): boolean =>
    rules.every((rule) => rule.violations({ object, request }).length === 0);
  if (passes(kubeletClientInTree)) return 'kubernetes.io/kube-apiserver-client-kubelet';
  if (passes(kubeletServingInTree)) return 'kubernetes.io/kubelet-serving';
  return 'kubernetes.io/legacy-unknown';
}
