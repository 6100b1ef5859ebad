/** Checks values against the schema, and writes problems as messages for an operator. */
import type { z } from 'zod';
import { quoted } from '../outcome/printable-text.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { Path } from './fields/place.ts';
import { duration } from './fields/values.ts';
import { configurationSchema } from './schema/cluster.ts';
import { suggestion } from './suggestion.ts';

export interface ShapeProblem {
  readonly path: Path;
  readonly message: string;
  /** Whether to point at the key rather than at its value. */
  readonly key: boolean;
}

/** Returns the value as it was written. Defaults are filled in later, after each cluster is merged with `defaults`. */
export function checkShape<Shape extends z.ZodType>(
  shape: Shape,
  value: unknown,
): Result<z.input<Shape>, readonly ShapeProblem[]> {
  const { error } = shape.safeParse(value, { error: messageOf });
  return error === undefined ? success(value as z.input<Shape>) : failure(error.issues.flatMap(problemsOf));
}

function problemsOf(issue: z.core.$ZodIssue): readonly ShapeProblem[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `unknown key ${quoted(key)}${didYouMean(key, keysAt(path))}`,
      key: true,
    }));
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues[0]?.message ?? issue.message, key: true }];
  return [{ path, message: issue.message, key: false }];
}

/** The message for an issue; `undefined`: the schema has a message of its own. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return issue.input === undefined ? 'is required' : wrongType(issue);
  if (issue.code === 'too_small')
    return issue.origin === 'string' ? 'must not be empty' : `must be ${issue.minimum} or more`;
  if (issue.code === 'too_big')
    return issue.origin === 'array'
      ? `must have at most ${issue.maximum} entries`
      : `must be at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`;
  if (issue.code !== 'invalid_value') return undefined;
  const values = issue.values.map(String);
  if (
    typeof issue.input === 'string' &&
    issue.values.some((value) => value !== issue.input && String(value) === issue.input)
  )
    return `must be ${issue.input} without quotes`;
  const meant = typeof issue.input === 'string' ? suggestion(issue.input, values) : undefined;
  if (meant !== undefined) return `${quoted(String(issue.input))} is not known here; did you mean ${quoted(meant)}?`;
  return `must be ${values.length === 1 ? '' : 'one of '}${values.join(', ')}`;
}

function wrongType({ expected, input, inst }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string {
  const noun = `must be ${nouns[expected] ?? expected}`;
  if (expected === 'string' && (typeof input === 'number' || typeof input === 'boolean')) {
    if (inst !== duration) return `${noun}: put it in quotes`;
    return Number.isSafeInteger(input) && Number(input) > 0
      ? `has no unit: write ${input}m, ${input}h or ${input}d`
      : `${noun} such as 30d`;
  }
  const bare = expected === 'boolean' ? /^(true|false)$/ : /^-?[0-9]{1,15}$/;
  const isQuoted = typeof input === 'string' && nouns[expected] !== undefined && bare.test(input);
  return isQuoted && ['boolean', 'number', 'int'].includes(expected) ? `must be ${input} without quotes` : noun;
}

const nouns: Readonly<Record<string, string>> = {
  object: 'a map of keys to values ({} for an empty one)',
  record: 'a map of names to values ({} for an empty one)',
  array: 'a list',
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

function didYouMean(word: string, candidates: readonly string[]): string {
  const meant = suggestion(word, candidates);
  if (meant !== undefined) return `; did you mean ${quoted(meant)}?`;
  return candidates.length === 0 ? '' : ` (known: ${candidates.join(', ')})`;
}

/** The keys that the schema knows in the map at that path. */
function keysAt(path: Path): readonly string[] {
  type Schema = { properties?: Record<string, Schema>; additionalProperties?: Schema };
  let schema: Schema | undefined = configurationSchema();
  for (const part of path) schema = schema?.properties?.[part] ?? schema?.additionalProperties;
  return Object.keys(schema?.properties ?? {});
}
