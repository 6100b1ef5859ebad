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

// ── Ours, for every signer ──────────────────────────────────────────────────────────────────────────────────────────

const keys = [keyKind, rsaSize, signatureHash];
/** Of the built-in signers that leave the name to the requester. */
const userNames = [namesNotReserved, commonNameAllowed, organizationsAllowed, hasName];

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
  custom: [...keys, namesNotReserved, sanTypes, usagesKnown, ...customRules, hasName],
};

/**
 * The violations of all rules, in order; empty if the request may be signed. If the profile does not allow the requester, only
 * that is reported: no further work is done, and the requester learns nothing about the other rules.
 */
export function checkProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Violation[] {
  const question = { profile, object, request };
  const requester = violationsOf(requesterAllowed, question);
  return requester.length > 0 ? requester : rulesOf[profile.kind].flatMap((rule) => violationsOf(rule, question));
}

export interface Finding {
  readonly check: string;
  readonly observed: string;
  /** Empty = passed. */
  readonly violations: readonly Violation[];
}

/** The same rules in the same order, including those that hold. */
export function explainProfile(profile: Profile, object: RequestObject, request: CertificateRequest): Finding[] {
  const question = { profile, object, request };
  const findingOf = (rule: Rule): Finding => ({
    check: rule.check,
    observed: rule.observed(question),
    violations: violationsOf(rule, question),
  });
  const first = findingOf(requesterAllowed);
  return first.violations.length > 0 ? [first] : [first, ...rulesOf[profile.kind].map(findingOf)];
}

function violationsOf(rule: Rule, question: Question): Violation[] {
  return rule.violations(question).map((message) => violation(codeFor(question.profile, rule), message));
}

/** The in-tree code only for in-tree signers. The texts are the same. */
function codeFor(profile: Profile, rule: Rule): RefusalCode {
  return isInTree(profile) ? rule.code : (rule.codeElsewhere ?? rule.code);
}

/**
 * The signer of a v1beta1 request that names none, as the API server defaults it (pkg/apis/certificates/v1beta1/
 * defaults.go): by the in-tree rules alone, so that ours can then refuse it under the right name.
 */
export function defaultSignerName(object: RequestObject, request: CertificateRequest): string {
  const passes = (rules: readonly InTreeRule[]): boolean =>
    rules.every((rule) => rule.violations({ object, request }).length === 0);
  if (passes(kubeletClientInTree)) return 'kubernetes.io/kube-apiserver-client-kubelet';
  if (passes(kubeletServingInTree)) return 'kubernetes.io/kubelet-serving';
  return 'kubernetes.io/legacy-unknown';
}
