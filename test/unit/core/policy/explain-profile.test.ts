/** The values that `csr explain` shows beside each check, where they are more than the request's own text. */
import { describe, expect, test } from 'vitest';
import { explainProfile } from '../../../../core/policy/check-profile.ts';
import { customRules, object, profile, request } from '../questions.ts';
import type { Asked } from '../questions.ts';

function seen(check: string, asked: Asked): string | undefined {
  const given = profile('custom', { custom: customRules() });
  return explainProfile(given, object(asked), request(asked)).find((finding) => finding.check === check)?.observed;
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
    expect(seen(check, asked)).toBe(text);
  });
});
