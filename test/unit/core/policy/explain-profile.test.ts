/** The values that `csr explain` shows beside each check, where they are more than the request's own text. */
import { describe, expect, test } from 'vitest';
import { explainProfile } from '../../../../core/policy/check-profile.ts';
import { customRules, object, profile, request } from '../questions.ts';
import type { Asked } from '../questions.ts';

function found(check: string, asked: Asked) {
  const given = profile('custom', { custom: customRules() });
  return explainProfile(given, object(asked), request(asked)).find((finding) => finding.check === check);
}

describe('what was seen', () => {
  test.each<[string, string, Asked, string]>([
    ['no other type', 'subjectAltNames are DNS, email, IP or URI', {}, 'no others'],
    [
      'another type',
      'subjectAltNames are DNS, email, IP or URI',
      { sans: { unsupported: ['otherName'] } },
      '"otherName"',
    ],
    [
      'neither subject nor names',
      'the certificate has a name: a subject or a subjectAltName',
      {},
      'no subject, no subjectAltNames',
    ],
    [
      'a subject',
      'the certificate has a name: a subject or a subjectAltName',
      { commonName: 'web' },
      'a subject, no subjectAltNames',
    ],
    [
      'a name',
      'the certificate has a name: a subject or a subjectAltName',
      { sans: { dns: ['web'] } },
      'no subject, subjectAltNames',
    ],
  ])('%s', (_, check, asked, text) => {
    expect(found(check, asked)?.observed).toBe(text);
  });
});

test.each<[string, Asked, boolean]>([
  ['a request without names', {}, false],
  ['a request with a DNS name', { sans: { dns: ['web'] } }, true],
  ['a request with a name of another type', { sans: { unsupported: ['otherName'] } }, true],
])('whether the check of name types applies: %s', (_, asked, applies) => {
  expect(found('subjectAltNames are DNS, email, IP or URI', asked)?.applies).toBe(applies);
});
