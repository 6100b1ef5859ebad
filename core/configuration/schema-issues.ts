/** Issues of the schema library as text that an operator can act on. */
import type { z } from 'zod';
import { quoted } from '../outcome/printable-text.ts';
import type { Path } from './model/report.ts';
import { configurationSchema } from './schema/cluster.ts';
import { suggestion } from './suggestion.ts';

export interface ReadableIssue {
  readonly path: Path;
  readonly message: string;
  /** Whether to point at the key rather than at its value. */
  readonly key: boolean;
}

export function readable(issue: z.core.$ZodIssue): ReadableIssue[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `unknown key ${quoted(key)}${didYouMean(key, keysAt(path))}`,
      key: true,
    }));
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues[0]?.message ?? issue.message, key: true }];
  return [{ path, message: shapeMessage(issue), key: false }];
}

function shapeMessage(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type')
    return issue.input === undefined ? 'is required' : `must be ${nouns[issue.expected] ?? issue.expected}`;
  if (issue.code !== 'invalid_value') return issue.message;
  const values = issue.values.map(String);
  const meant = typeof issue.input === 'string' ? suggestion(issue.input, values) : undefined;
  if (meant !== undefined) return `${quoted(String(issue.input))} is not known here; did you mean ${quoted(meant)}?`;
  return `must be ${values.length === 1 ? '' : 'one of '}${values.join(', ')}`;
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

/** The keys the schema knows in the map at that path. */
function keysAt(path: Path): readonly string[] {
  type Schema = { properties?: Record<string, Schema>; additionalProperties?: Schema };
  let schema: Schema | undefined = configurationSchema();
  for (const part of path) schema = schema?.properties?.[part] ?? schema?.additionalProperties;
  return Object.keys(schema?.properties ?? {});
}
