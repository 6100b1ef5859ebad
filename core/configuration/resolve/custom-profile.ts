/**
 * Resolves the keys of a profile that only an operator's own signer has. A pattern that can never match is an error, because
 * its author meant another one.
 */
import type { Place } from '../fields/place.ts';
import { notRange } from './reserved.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import { isHostName, parseRange } from '../../policy/patterns.ts';
import type { CustomRules } from '../../policy/profile.ts';
import { isExtendedUsage } from '../../x509/key-usages.ts';

/** `at`: the profile. */
export function resolveCustomRules({ usages, sans, subject }: ProfileInput, at: Place): CustomRules {
  const { dns = [], email = [], ip = [], uri = [], required = false } = sans;
  const rules: CustomRules = {
    usages: usages ?? { allowed: [], required: [] },
    sans: { dns, email, ip: ip.flatMap((text) => parseRange(text) ?? []), uri, required },
  };
  checkUsages(rules, at('usages'));
  checkNamesPermitted(rules, subject, at);
  for (const [type, patterns] of Object.entries({ dns, email, ip, uri }))
    patterns.forEach((pattern, index) => {
      const problem = sanChecks[type as keyof typeof sanChecks](pattern);
      if (problem !== undefined) at('sans', type, index).error(problem);
    });
  return rules;
}

function checkUsages({ usages: { allowed, required } }: CustomRules, at: Place): void {
  if (allowed.length === 0) return at('allowed').error('is required: a request must ask for a usage');
  // RFC 5280 §4.2.1.9: only a CA may sign certificates, and a leaf is not a CA.
  if (allowed.includes('cert sign')) at('allowed').error('no leaf certificate may sign certificates');
  if (!allowed.some(isExtendedUsage))
    at('allowed').error(
      'must hold an extended usage such as server auth: without one a certificate is valid for every purpose',
    );
  required.forEach((usage, index) => {
    if (!allowed.includes(usage)) at('required', index).error('is not among the allowed ones');
  });
}

function checkNamesPermitted(
  { sans: { dns, email, ip, uri, required } }: CustomRules,
  { commonNames = [], allowReserved = [], commonNameRequired }: ProfileInput['subject'],
  at: Place,
): void {
  const anyName = commonNames.length + allowReserved.length > 0;
  if (commonNameRequired === true && !anyName)
    at('subject', 'commonNameRequired').error('nothing could satisfy it: no common name is permitted');
  const anySan = [dns, email, ip, uri].some((patterns) => patterns.length > 0);
  if (required && !anySan) at('sans', 'required').error('nothing could satisfy it: no name is permitted');
  if (!anySan && !anyName)
    at.error('permits no certificate: list common names under subject, or subjectAltNames under sans');
}

/** The problem of a pattern, by the type of its subjectAltName; `undefined`: the pattern is valid. */
const sanChecks: Readonly<Record<'dns' | 'email' | 'ip' | 'uri', (pattern: string) => string | undefined>> = {
  // `*` can match one letter, so the pattern with a letter in its place must be a host name.
  dns: (pattern) => (isHostName(pattern.replaceAll('*', 'x')) ? undefined : 'is not a DNS name or a pattern of one'),
  email: (pattern) =>
    /^[^@\s]+@[^@\s]+$/.test(pattern) ? undefined : 'must be an address with one @, such as *@example.com',
  ip: (pattern) => (parseRange(pattern) === undefined ? notRange : undefined),
  uri: (pattern) =>
    /^[a-z][a-z0-9+.-]*:[^\s]+$/.test(pattern) ? undefined : 'must begin with a scheme, such as spiffe://example.com/*',
};
