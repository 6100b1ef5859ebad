/**
 * The rules of an operator's own signer: whatever its profile does not name is refused. Nothing is dropped or mended,
 * so that a requester gets exactly what was asked for, or is told why not.
 */
import { dnsMatches, emailMatches, nameMatches, parseRange, rangeHolds, uriMatches } from './patterns.ts';
import type { CustomRules } from './profiles.ts';
import { atMost, quoted, quotedList } from './quoted.ts';
import { unless } from './rule.ts';
import type { Question, Rule } from './rule.ts';
import { isExtendedUsage } from './usages.ts';

const commonNameType = '2.5.4.3';
const organizationType = '2.5.4.10';

const usagesAllowed: Rule = {
  check: 'usages are those the profile allows',
  code: 'UsageNotPermitted',
  seen: ({ object }) => quotedList(object.usages),
  wrong: (question) => {
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

/** Without one the certificate is good for every purpose, client logins included (RFC 5280 §4.2.1.12). */
const extendedUsagePresent: Rule = {
  check: 'an extended usage is among them',
  code: 'UsageNotPermitted',
  seen: ({ object }) => quotedList(object.usages),
  wrong: ({ object: { usages } }) =>
    unless(usages.some(isExtendedUsage), 'an extended usage, such as "server auth", is required'),
};

const commonNameAllowed: Rule = {
  check: 'the common name is one the profile allows',
  code: 'SubjectNotPermitted',
  seen: ({ request }) => quoted(request.subject.commonName),
  wrong: (question) => {
    const { commonNames, commonNameRequired } = rulesOf(question).subject;
    const { commonName } = question.request.subject;
    if (commonName === '') return unless(!commonNameRequired, 'a common name is required');
    return unless(
      isSystemName(commonName) || commonNames.some((pattern) => nameMatches(pattern, commonName)),
      `common name ${quoted(commonName)} is not permitted`,
    );
  },
};

const organizationsAllowed: Rule = {
  check: 'organizations are those the profile allows',
  code: 'SubjectNotPermitted',
  seen: ({ request }) => quotedList(request.subject.organizations),
  wrong: (question) => {
    const { organizations } = rulesOf(question).subject;
    const strangers = question.request.subject.organizations.filter(
      (value) => !isSystemName(value) && !organizations.some((pattern) => nameMatches(pattern, value)),
    );
    return atMost(strangers, (value) => `organization ${quoted(value)} is not permitted`);
  },
};

/** Attributes no profile can name, and a second common name, of which the certificate would carry only the last. */
const subjectIsPlain: Rule = {
  check: 'the subject is at most one common name and organizations',
  code: 'SubjectNotPermitted',
  seen: ({ request }) => quotedList(request.subject.attributes.map(({ type }) => type)),
  wrong: ({ request: { subject } }) => [
    ...atMost(
      subject.attributes.map(({ type }) => type).filter((type) => type !== commonNameType && type !== organizationType),
      (type) => `subject attribute ${type} is not permitted`,
    ),
    ...unless(
      subject.attributes.filter(({ type }) => type === commonNameType).length <= 1,
      'more than one common name is not permitted',
    ),
  ],
};

/** One matcher per name type; the type decides what `*` covers. */
const sanMatchers = {
  dns: dnsMatches,
  email: emailMatches,
  ip: (pattern: string, value: string): boolean => {
    const range = parseRange(pattern);
    return range !== undefined && rangeHolds(range, value);
  },
  uri: uriMatches,
} as const;

const sanLabels = { dns: 'DNS', email: 'email', ip: 'IP', uri: 'URI' } as const;

function sanAllowed(type: keyof typeof sanMatchers): Rule {
  const matches = sanMatchers[type];
  const label = `${sanLabels[type]} subjectAltName`;
  return {
    check: `${label}s are those the profile allows`,
    code: 'SanNotPermitted',
    seen: ({ request }) => quotedList(request.sans[type]),
    wrong: (question) => {
      const patterns = rulesOf(question).sans[type];
      const strangers = question.request.sans[type].filter(
        (value) => !patterns.some((pattern) => matches(pattern, value)),
      );
      return atMost(strangers, (value) => `${label} ${quoted(value)} is not permitted`);
    },
  };
}

const sanRequired: Rule = {
  check: 'a subjectAltName is present where the profile wants one',
  code: 'SanNotPermitted',
  seen: ({ request: { sans } }) => quotedList([...sans.dns, ...sans.email, ...sans.ip, ...sans.uri]),
  wrong: (question) => {
    const { dns, email, ip, uri } = question.request.sans;
    const present = [dns, email, ip, uri].some((names) => names.length > 0);
    return unless(present || !rulesOf(question).sans.required, 'a subjectAltName is required');
  },
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

/** Only the rule on reserved names may let these pass: a pattern as wide as `*` says nothing about `system:` names. */
function isSystemName(name: string): boolean {
  return name.startsWith('system:');
}

function rulesOf({ profile }: Question): CustomRules {
  return profile.custom ?? nothingAllowed;
}

/** A custom profile without rules permits nothing; configuration never makes one. */
export const nothingAllowed: CustomRules = {
  usages: { allowed: [], required: [] },
  subject: { commonNames: [], organizations: [], commonNameRequired: true },
  sans: { dns: [], email: [], ip: [], uri: [], required: true },
};
