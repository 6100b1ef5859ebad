/**
 * The part of a profile that only an operator's own signer has: patterns checked once, here, so that what stands in
 * the file is what its author meant. A pattern that could never match is an error, not a silent nothing.
 */
import type { Path, Report } from '../model/report.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import { isHostName, parseRange } from '../../policy/patterns.ts';
import type { CustomRules } from '../../policy/profile.ts';
import { isExtendedUsage } from '../../x509/key-usages.ts';

export function resolveCustomRules(input: ProfileInput, at: Path, report: Report): CustomRules {
  const { sans = {} } = input;
  const rules: CustomRules = {
    usages: { allowed: input.usages?.allowed ?? [], required: input.usages?.required ?? [] },
    sans: {
      dns: sans.dns ?? [],
      email: sans.email ?? [],
      ip: (sans.ip ?? []).flatMap((text) => parseRange(text) ?? []),
      uri: sans.uri ?? [],
      required: sans.required ?? false,
    },
  };
  checkUsages(rules, [...at, 'usages'], report);
  checkSomebody(rules, input.subject, at, report);
  for (const [type, check] of Object.entries(sanChecks))
    sans[type as keyof typeof sanChecks]?.forEach((pattern, index) => {
      const wrong = check(pattern);
      if (wrong !== undefined) report('error', [...at, 'sans', type, index], wrong);
    });
  return rules;
}

function checkUsages({ usages: { allowed, required } }: CustomRules, at: Path, report: Report): void {
  if (allowed.length === 0) return report('error', [...at, 'allowed'], 'is required: a request must ask for a usage');
  // RFC 5280 §4.2.1.9: only a CA may sign certificates, and no leaf is one.
  if (allowed.includes('cert sign')) report('error', [...at, 'allowed'], 'no leaf certificate may sign certificates');
  if (!allowed.some(isExtendedUsage))
    report(
      'error',
      [...at, 'allowed'],
      'must hold an extended usage such as server auth: without one a certificate is valid for every purpose',
    );
  required.forEach((usage, index) => {
    if (!allowed.includes(usage)) report('error', [...at, 'required', index], 'is not among the allowed ones');
  });
}

function checkSomebody({ sans }: CustomRules, subject: ProfileInput['subject'], at: Path, report: Report): void {
  const anyName = (subject?.commonNames ?? []).length + (subject?.allowReserved ?? []).length > 0;
  if (subject?.commonNameRequired === true && !anyName)
    report('error', [...at, 'subject', 'commonNameRequired'], 'nothing could satisfy it: no common name is permitted');
  const anySan = [sans.dns, sans.email, sans.ip, sans.uri].some((patterns) => patterns.length > 0);
  if (sans.required && !anySan)
    report('error', [...at, 'sans', 'required'], 'nothing could satisfy it: no name is permitted');
  if (!anySan && !anyName)
    report('error', at, 'permits no certificate: list common names under subject, or subjectAltNames under sans');
}

/** What is wrong with a pattern of that type. */
const sanChecks: Readonly<Record<'dns' | 'email' | 'ip' | 'uri', (pattern: string) => string | undefined>> = {
  // `*` may stand for any run, so a letter in its place must make a host name.
  dns: (pattern) => (isHostName(pattern.replaceAll('*', 'x')) ? undefined : 'is not a DNS name or a pattern of one'),
  email: (pattern) =>
    /^[^@\s]+@[^@\s]+$/.test(pattern) ? undefined : 'must be an address with one @, such as *@example.com',
  ip: (pattern) =>
    parseRange(pattern) === undefined
      ? 'must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8'
      : undefined,
  uri: (pattern) =>
    /^[a-z][a-z0-9+.-]*:[^\s]+$/.test(pattern) ? undefined : 'must begin with a scheme, such as spiffe://example.com/*',
};
