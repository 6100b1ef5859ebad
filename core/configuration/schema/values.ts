/** Schemas that several keys of countersign.yaml share. */
import { z } from 'zod';
import { regionName } from '../../ports/region-name.ts';

export const text = z.string().min(1).max(253);

/** Each name of a request is compared with each entry, so the number of entries bounds what a request costs. */
export const texts = z.array(text).max(256);

export const accountId = z.string().regex(/^[0-9]{12}$/, 'must be twelve digits, in quotes');

export const flag = (initial: boolean, description: string) => z.boolean().default(initial).describe(description);

export const matching = (pattern: RegExp, message: string) => z.string().regex(pattern, message);

export const region = matching(regionName, 'must be a region such as eu-central-1');

/** An absent key means the default, so "no limit" has a word of its own. */
export const countOr = <Word extends string>(word: Word, least: number, most: number) => {
  const wanted = `must be a whole number from ${least} to ${most}, or ${word}`;
  return z.union([z.int().min(least, wanted).max(most, wanted), z.literal(word)], wanted);
};
