/**
 * A signer of the operator's own: each limit that a profile can set, once met and once missed. The limits together with the
 * rules for every signer are in check-profile.test.ts.
 */
import { describe, expect, test } from 'vitest';
import { parseRange } from '../../../../core/policy/patterns.ts';
import { checkProfile } from '../../../../core/policy/check-profile.ts';
import { customProfile, object, request } from '../questions.ts';
import type { Asked } from '../questions.ts';

/** Blocks of addresses, as configuration reads them. */
const blocks = (...texts: readonly string[]) => texts.flatMap((text) => parseRange(text) ?? []);

type Limits = Parameters<typeof customProfile>[0];

const web: Asked = { sans: { dns: ['web.example.com'] }, usages: ['digital signature', 'server auth'] };
const anyDns = { dns: ['*'] };

function codes(limits: Limits, asked: Asked): readonly string[] {
  return checkProfile(customProfile(limits), object(asked), request(asked)).map(({ code }) => code);
}

type Row = readonly [limit: string, limits: Limits, met: Asked, missed: Asked, code: string];
const rows: readonly Row[] = [
  ['usages.allowed', { sans: anyDns }, web, { ...web, usages: ['server auth', 'client auth'] }, 'UsageNotPermitted'],
  [
    'usages.required',
    { sans: anyDns, usages: { required: ['digital signature', 'server auth'] } },
    web,
    { ...web, usages: ['server auth'] },
    'UsageNotPermitted',
  ],
  ['an extended usage', { sans: anyDns }, web, { ...web, usages: ['digital signature'] }, 'UsageNotPermitted'],
  [
    'subject.commonNames',
    { sans: anyDns, subject: { commonNames: ['web', 'api-*'] } },
    { ...web, commonName: 'api-1' },
    { ...web, commonName: 'webs' },
    'SubjectNotPermitted',
  ],
  [
    'subject.commonNames without an entry',
    { sans: anyDns, subject: { commonNames: [] } },
    web,
    { ...web, commonName: 'web' },
    'SubjectNotPermitted',
  ],
  [
    'subject.commonNameRequired',
    { sans: anyDns, subject: { commonNames: ['web'], commonNameRequired: true } },
    { ...web, commonName: 'web' },
    web,
    'SubjectNotPermitted',
  ],
  [
    'subject.organizations',
    { sans: anyDns, subject: { organizations: ['dev', 'ops-*'] } },
    { ...web, organizations: ['dev', 'ops-1'] },
    { ...web, organizations: ['dev', 'op'] },
    'SubjectNotPermitted',
  ],
  [
    'at most one common name',
    { sans: anyDns, subject: { commonNames: ['*'] } },
    { ...web, commonName: 'web' },
    { ...web, commonName: 'web', otherAttributes: ['2.5.4.3'] },
    'SubjectNotPermitted',
  ],
  [
    'no attribute but common name and organization',
    { sans: anyDns },
    web,
    { ...web, otherAttributes: ['2.5.4.5'] },
    'SubjectNotPermitted',
  ],
  [
    'sans.required, by a DNS name',
    { sans: { ...anyDns, required: true }, subject: { organizations: ['dev'] } },
    web,
    { ...web, sans: {}, organizations: ['dev'] },
    'SanNotPermitted',
  ],
  [
    'sans.required, by a URI',
    { sans: { uri: ['spiffe://*/web'], required: true }, subject: { organizations: ['dev'] } },
    { ...web, sans: { uri: ['spiffe://example.com/web'] } },
    { ...web, sans: {}, organizations: ['dev'] },
    'SanNotPermitted',
  ],
  [
    'sans.dns',
    { sans: { dns: ['*.example.com'] } },
    web,
    { ...web, sans: { dns: ['web.example.com', 'web.example.org'] } },
    'SanNotPermitted',
  ],
  [
    'sans.email',
    { sans: { email: ['*@example.com'] } },
    { ...web, sans: { email: ['a@example.com'] } },
    { ...web, sans: { email: ['a@example.org'] } },
    'SanNotPermitted',
  ],
  [
    'sans.ip',
    { sans: { ip: blocks('10.0.0.0/8', '2001:db8::/32') } },
    { ...web, sans: { ip: ['10.1.2.3', '2001:db8::1'] } },
    { ...web, sans: { ip: ['10.1.2.3', '2001:db9::1'] } },
    'SanNotPermitted',
  ],
  [
    'sans.uri',
    { sans: { uri: ['spiffe://example.com/ns/*/sa/web'] } },
    { ...web, sans: { uri: ['spiffe://example.com/ns/a/sa/web'] } },
    { ...web, sans: { uri: ['spiffe://example.com/ns/a/b/sa/web'] } },
    'SanNotPermitted',
  ],
];

describe('the limits of a signer of the operator’s own', () => {
  test.for(rows)('%s', ([, limits, met, missed, code]) => {
    expect(codes(limits, met)).toEqual([]);
    expect(codes(limits, missed)).toEqual([code]);
  });

  test('each missing usage is named', () => {
    const limits = {
      sans: anyDns,
      usages: {
        allowed: ['server auth', 'client auth', 'digital signature'],
        required: ['client auth', 'digital signature'],
      },
    };
    const asked = { ...web, usages: ['server auth'] };
    expect(checkProfile(customProfile(limits), object(asked), request(asked)).map(({ message }) => message)).toEqual([
      'usage "client auth" is required',
      'usage "digital signature" is required',
    ]);
  });
});
