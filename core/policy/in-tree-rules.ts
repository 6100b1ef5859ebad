/**
 * The checks of the in-tree signer of Kubernetes 1.36.3, in its order and with its messages, which operators, tools and the
 * oracle test compare. It stops at the first broken rule. We check all rules, so our message starts with its message.
 * Source: pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer/signer.go.
 */
import type { RefusalCode } from '../outcome/outcome.ts';
import { atMost, printable, quoted, quotedList } from '../outcome/printable-text.ts';
import { violationUnless } from './rule.ts';
import type { Question, Rule } from './rule.ts';

export const nodesGroup = 'system:nodes';
export const nodeUserPrefix = 'system:node:';

/** Fixed by Kubernetes and independent of the profile. */
export interface InTreeRule extends Rule {
  readonly code: 'SignerValidationFailure';
  /** The code if the same rule is used for a signer that is not in-tree. */
  readonly codeElsewhere: RefusalCode;
  violations(question: Omit<Question, 'profile'>): readonly string[];
}

const organizationIsNodes: InTreeRule = {
  check: `organization is exactly ${nodesGroup}`,
  code: 'SignerValidationFailure',
  codeElsewhere: 'SubjectNotPermitted',
  observed: ({ request }) => quotedList(request.subject.organizations),
  violations: ({ request: { subject } }) =>
    violationUnless(
      subject.organizations.length === 1 && subject.organizations[0] === nodesGroup,
      'subject organization is not system:nodes',
    ),
};

const commonNameIsNode: InTreeRule = {
  check: `common name begins with ${nodeUserPrefix}`,
  code: 'SignerValidationFailure',
  codeElsewhere: 'SubjectNotPermitted',
  observed: ({ request }) => quoted(request.subject.commonName),
  violations: ({ request }) =>
    violationUnless(
      request.subject.commonName.startsWith(nodeUserPrefix),
      'subject common name does not begin with system:node:',
    ),
};

const dnsOrIpRequired: InTreeRule = {
  check: 'a DNS or IP subjectAltName is present',
  code: 'SignerValidationFailure',
  codeElsewhere: 'SanNotPermitted',
  observed: ({ request: { sans } }) => quotedList([...sans.dns, ...sans.ip]),
  violations: ({ request: { sans } }) =>
    violationUnless(sans.dns.length > 0 || sans.ip.length > 0, 'DNS or IP subjectAltName is required'),
};

const noDns = noSan('dns', 'DNS');
const noEmail = noSan('email', 'Email');
const noIp = noSan('ip', 'IP');
const noUri = noSan('uri', 'URI');

function noSan(type: 'dns' | 'email' | 'ip' | 'uri', name: string): InTreeRule {
  return {
    check: `no ${name} subjectAltNames`,
    code: 'SignerValidationFailure',
    codeElsewhere: 'SanNotPermitted',
    observed: ({ request }) => quotedList(request.sans[type]),
    violations: ({ request }) =>
      violationUnless(request.sans[type].length === 0, `${name} subjectAltNames are not allowed`),
  };
}

/** Compares sets: duplicates and order do not matter. Key encipherment may be missing, because only RSA keys need it. */
function usagesAreExactly(purpose: 'client auth' | 'server auth'): InTreeRule {
  const all = ['digital signature', 'key encipherment', purpose].sort();
  return {
    check: `usages are digital signature, ${purpose} and at will key encipherment`,
    code: 'SignerValidationFailure',
    codeElsewhere: 'UsageNotPermitted',
    observed: ({ object }) => quotedList(object.usages),
    violations: ({ object }) => {
      const requested = new Set(object.usages);
      const complete = all.every((usage) => requested.has(usage) || usage === 'key encipherment');
      const exact = complete && [...requested].every((usage) => all.includes(usage));
      return violationUnless(exact, `usages did not match [${all.join(' ')}]`);
    },
  };
}

/** The in-tree signer reports the first unknown usage, so violations keep the order of the list. */
const clientUsages: InTreeRule = {
  check: 'usages are client auth and at most digital signature, key encipherment',
  code: 'SignerValidationFailure',
  codeElsewhere: 'UsageNotPermitted',
  observed: ({ object }) => quotedList(object.usages),
  violations: ({ object: { usages } }) => [
    ...atMost(
      usages.filter((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage)),
      (usage) => `invalid usage for client certificate: ${printable(usage)}`,
    ),
    ...violationUnless(usages.includes('client auth'), 'missing required usage for client certificate: client auth'),
  ],
};

export const kubeletClientInTree: readonly InTreeRule[] = [
  organizationIsNodes,
  noDns,
  noEmail,
  noIp,
  noUri,
  commonNameIsNode,
  usagesAreExactly('client auth'),
];
export const kubeletServingInTree: readonly InTreeRule[] = [
  organizationIsNodes,
  dnsOrIpRequired,
  noEmail,
  noUri,
  usagesAreExactly('server auth'),
  commonNameIsNode,
];

export const apiServerClientInTree: readonly InTreeRule[] = [clientUsages];
