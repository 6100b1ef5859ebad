/** A table of SECURITY.md about one provider, row by row: what each attempt gets from both handlers, and that the page says the same. */
import { describe, expect, test } from 'vitest';
import type { RefusalCode } from '../../../../../core/outcome/outcome.ts';
import type { AttestedSite, CertificateSigningRequest, Said } from '../../../../harness/attestation/attested-site.ts';
import { codesIn, tableUnder } from '../security-page.ts';

/** What attest says, and sign about the same bytes. */
export interface Asked extends Said {
  readonly signed: string;
}

export interface Threat {
  readonly codes: readonly (RefusalCode | 'issued')[];
  readonly tries: readonly (() => Promise<Pick<Asked, 'said' | 'signed'>>)[];
}

export async function askBoth(site: AttestedSite, object: CertificateSigningRequest): Promise<Asked> {
  const first = await site.attest(object);
  return { ...first, signed: (await site.sign(object)).said };
}

/** `heading`: of the table in SECURITY.md. */
export function describeThreats(heading: string, threats: Readonly<Record<string, Threat>>): void {
  describe.each(Object.entries(threats))('an attacker who can %s', (_, { codes, tries }) => {
    test('gets nothing but this', async () => {
      const signed: string[] = [];
      for (const attempt of tries) {
        const answer = await attempt();
        expect(answer.said).toBe(answer.signed === 'issued' ? 'approve' : answer.signed);
        signed.push(answer.signed);
      }
      expect([...new Set(signed)].toSorted()).toEqual([...codes].toSorted());
    });
  });

  test('SECURITY.md has the same rows, each with its codes', () => {
    const page = tableUnder(heading).map(([threat = '', , codes = '']) => [threat, codesIn(codes)]);
    expect(page).toEqual(Object.entries(threats).map(([threat, { codes }]) => [threat, codes]));
  });
}
