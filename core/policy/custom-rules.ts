/**
 * The rules of custom signers. They refuse everything that the profile does not permit, and drop or change nothing, so the
 * requester gets exactly what it requested, or the reasons for the refusal.
 */
import { dnsMatchesAny, emailMatches, isInRanges, uriMatches } from './patterns.ts';
import type { CustomRules } from './profile.ts';
import { atMost, quoted, quotedList } from '../outcome/printable-text.ts';
import { violationUnless } from './rule.ts';
import type { Question, Rule } from './rule.ts';
import { commonNameAllowed, hasNames, organizationsAllowed } from './subject-rules.ts';
import { attributeName } from '../x509/distinguished-name.ts';
import { isExtendedUsage } from '../x509/key-usages.ts';

const commonNameType = '2.5.4.3';
const organizationType = '2.5.4.10';

const usagesAllowed: Rule = {
  check: 'usages are those the profile allows',
  code: 'UsageNotPermitted',
  observed: ({ object }) => quotedList(object.usages),
  violations: (question) => {
    const { allowed, required } = rulesOf(question).usages;
    const asked = question.object.usages;
    return [
      ...atMost(
        asked.filter((usage) => !allowed.includes(usage)),
        (usage) => `usage ${quoted(usage)} is not permitted`,
      ),
      ...required.filter((usage) => !asked.includes(usage)).map((usage) => `usage ${quoted(usage)} is required`),
    ];
  },
};

/** Without an extended usage the certificate is valid for every purpose, client logins included (RFC 5280 §4.2.1.12). */
const extendedUsagePresent: Rule = {
  check: 'an extended usage is among them',
  code: 'UsageNotPermitted',
  observed: ({ object }) => quotedList(object.usages),
  violations: ({ object: { usages } }) =>
    violationUnless(usages.some(isExtendedUsage), 'an extended usage, such as "server auth", is required'),
};

/** No profile can permit other attributes. With two common names, the certificate would have only the last. */
const subjectIsPlain: Rule = {
  check: 'the subject is at most one common name and organizations',
  code: 'SubjectNotPermitted',
  observed: ({ request }) => quotedList(request.subject.attributes.map(({ type }) => attributeName(type))),
  violations: ({ request: { subject } }) => [
    ...atMost(
      subject.attributes.map(({ type }) => type).filter((type) => type !== commonNameType && type !== organizationType),
      (type) => `subject attribute ${attributeName(type)} is not permitted`,
    ),
    ...violationUnless(
      subject.attributes.filter(({ type }) => type === commonNameType).length <= 1,
      'more than one common name is not permitted',
    ),
  ],
};

type SanRules = CustomRules['sans'];

/** Whether the profile permits a name, for each type of name; `*` matches other characters in each. */
const sanPermitted = {
  dns: ({ dns }: SanRules, value: string): boolean => dnsMatchesAny(dns, value),
  email: ({ email }: SanRules, value: string): boolean => email.some((pattern) => emailMatches(pattern, value)),
  ip: ({ ip }: SanRules, value: string): boolean => isInRanges(ip, value),
  uri: ({ uri }: SanRules, value: string): boolean => uri.some((pattern) => uriMatches(pattern, value)),
} as const;

const sanLabels = { dns: 'DNS', email: 'email', ip: 'IP', uri: 'URI' } as const;

function sanAllowed(type: keyof typeof sanPermitted): Rule {
  const isPermitted = sanPermitted[type];
  const label = `${sanLabels[type]} subjectAltName`;
  return {
    check: `${label}s are those the profile allows`,
    code: 'SanNotPermitted',
    observed: ({ request }) => quotedList(request.sans[type]),
    applies: ({ request }) => request.sans[type].length > 0,
    violations: (question) => {
      const { sans } = rulesOf(question);
      const refused = question.request.sans[type].filter((value) => !isPermitted(sans, value));
      return atMost(refused, (value) => `${label} ${quoted(value)} is not permitted`);
    },
  };
}

const sanRequired: Rule = {
  check: 'a subjectAltName is present where the profile wants one',
  code: 'SanNotPermitted',
  observed: ({ request: { sans } }) => quotedList([...sans.dns, ...sans.email, ...sans.ip, ...sans.uri]),
  applies: (question) => rulesOf(question).sans.required,
  violations: (question) =>
    violationUnless(
      hasNames(question.request.sans) || !rulesOf(question).sans.required,
      'a subjectAltName is required',
    ),
};

export const customRules: readonly Rule[] = [
  usagesAllowed,
  extendedUsagePresent,
  commonNameAllowed,
  organizationsAllowed,
  subjectIsPlain,
  sanRequired,
  sanAllowed('dns'),
  sanAllowed('email'),
  sanAllowed('ip'),
  sanAllowed('uri'),
];

function rulesOf({ profile }: Question): CustomRules {
  return profile.custom ?? denyAll;
}

/** For a custom profile without rules, which the configuration reader never creates. */
export const denyAll: CustomRules = {
  usages: { allowed: [], required: [] },
  sans: { dns: [], email: [], ip: [], uri: [], required: true },
};
