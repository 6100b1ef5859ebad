/** Schemas that several keys of countersign.yaml share. */
import { z } from 'zod';
import { regionName } from '../../ports/region-name.ts';

export const text = z.string().min(1).max(253);

/** Each name of a request is compared with each entry, so the number of entries bounds what a request costs. */
export const texts = z.array(text).max(256);

export const accountId = z
  .string()
  .regex(/^[0-9]{12}$/, 'must be twelve digits, in quotes')
  .meta({ examples: ['111122223333'] });

export const flag = (initial: boolean, description: string) => z.boolean().default(initial).describe(description);

export const matching = (pattern: RegExp, message: string) => z.string().regex(pattern, message);

export const region = matching(regionName, 'must be a region such as eu-central-1').meta({
  examples: ['eu-central-1'],
});

/** Duration in one unit. Nine digits suffice for every date that a certificate can hold. */
export const duration = matching(
  /^[1-9][0-9]{0,8}[smhd]$/,
  'must be a duration such as 30d, 720h, 90m or 60s (quoted or not, one unit)',
).meta({ examples: ['30d', '12h', '90m'] });

/** Cluster and CA names are parts of URLs, record keys and file names, so each is a DNS label (RFC 1123). */
export const label = matching(
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
  'must be a DNS label: lower-case letters, digits and inner hyphens',
);

/** An absent key means the default, so "no limit" has a word of its own. */
export const countOr = <Word extends string>(word: Word, least: number, most: number) => {
  const wanted = `must be a whole number from ${least} to ${most}, or ${word}`;
  return z.union([z.int().min(least, wanted).max(most, wanted), z.literal(word)], wanted);
};

/** The schema has checked the form: `30d`, `720h` … */
export function seconds(duration: string): number {
  const unit = { s: 1, m: 60, h: 3600, d: 86_400 }[duration.slice(-1)] ?? Number.NaN;
  return Number(duration.slice(0, -1)) * unit;
}
