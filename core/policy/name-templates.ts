/**
 * Patterns that take parts out of a name, and templates that use these parts: the pattern `spiffe://prod.example/node/{node}` matches
 * `spiffe://prod.example/node/worker-1`, and the template `{node}.prod.example` then gives `worker-1.prod.example`.
 *
 * A part stands for one segment: letters, digits, `-` and `_`, and in a URI also `.`. It never contains the separator of its kind of
 * name (`/` or `.`), so `{node}.prod.example` does not match `a.team.prod.example`. A pattern can split a name in one way only.
 */
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { isSubdomain } from './patterns.ts';

/** The kinds of names in a certificate by which a machine can be identified. */
export const nameKinds = ['uri', 'cn', 'dns'] as const;
export type NameKind = (typeof nameKinds)[number];

export interface NamePattern {
  readonly expression: RegExp;
  /** The names of the parts, in their order. */
  readonly parts: readonly string[];
}

const labels: Readonly<Record<NameKind, string>> = {
  uri: '[A-Za-z0-9._-]{1,253}',
  cn: '[A-Za-z0-9_-]{1,63}',
  dns: '[a-z0-9_-]{1,63}',
};
const inUri = /[A-Za-z0-9._-]/;
const inLabel = /[A-Za-z0-9_-]/;

const part = /\{([a-z][A-Za-z0-9]{0,31})\}/g;

/** A problem is a clause: `has the part {node} twice`. */
export function parseNamePattern(kind: NameKind, text: string): Result<NamePattern, string> {
  const parts = Array.from(text.matchAll(part), ([, name = '']) => name);
  const literals = text.split(part).filter((_, index) => index % 2 === 0);
  if (!/^[!-~]+$/.test(text) || literals.some((literal) => /[{}*]/.test(literal)))
    return failure(
      'must be printable ASCII without blanks, with parts such as {node}, without other braces and without *',
    );
  const twice = parts.find((name, index) => parts.indexOf(name) !== index);
  if (twice !== undefined) return failure(`has the part {${twice}} twice`);
  // If a character could belong to either of two parts, one name could be split in two ways.
  const within = kind === 'uri' ? inUri : inLabel;
  if (literals.slice(1, -1).some((literal) => !Array.from(literal).some((character) => !within.test(character))))
    return failure('has two parts that no separator divides');
  // DNS names are compared in lower case.
  const written = kind === 'dns' ? literals.map((literal) => literal.toLowerCase()) : literals;
  const expression = new RegExp(`^${written.map((literal) => escaped(literal)).join(`(${labels[kind]})`)}$`);
  return success({ expression, parts });
}

/** The parts of the name by their names; `undefined` if the pattern does not match the whole name. */
export function matchName({ expression, parts }: NamePattern, name: string): ReadonlyMap<string, string> | undefined {
  const [whole, ...found] = expression.exec(name) ?? [];
  return whole === undefined ? undefined : new Map(parts.map((each, index) => [each, found[index] ?? '']));
}

/** The names of the parts that a template uses; `undefined` if it has other braces. */
export function templateParts(template: string): readonly string[] | undefined {
  return /[{}]/.test(template.replace(part, ''))
    ? undefined
    : Array.from(template.matchAll(part), ([, name = '']) => name);
}

export function fillTemplate(template: string, parts: ReadonlyMap<string, string>): string {
  return template.replace(part, (_, name: string) => parts.get(name) ?? '');
}

/** What a node may be called: a template with parts, or a pattern (patterns.ts). */
export type NodeNameTemplate =
  { readonly kind: 'template'; readonly template: string } | { readonly kind: 'pattern'; readonly pattern: string };

/** Names and patterns. */
export function nodeNamesOf(
  templates: readonly NodeNameTemplate[],
  parts: ReadonlyMap<string, string>,
): readonly string[] {
  return templates.flatMap((name) => {
    if (name.kind === 'pattern') return [name.pattern];
    const filled = fillTemplate(name.template, parts);
    // Node names are patterns: text from evidence must not become one.
    return isSubdomain(filled) ? [filled] : [];
  });
}

function escaped(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
