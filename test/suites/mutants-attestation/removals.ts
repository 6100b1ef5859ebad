/**
 * Every check of the aws provider, found in its source rather than listed by hand: a new one is tried the day it is
 * written. Removing one is replacing its condition so that it never refuses.
 *
 *   if (a || b) …             a, then b, is never so; if (a && b) …: also a, then b, is always so
 *   unless(a, …)              a always holds
 *   return a && b             a, then b, is always so (predicates); a || b: never so
 *   return a ? undefined : …  whatever a says, nothing is wrong
 *   /…/                       matches everything
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import type { Expression } from 'oxc-parser';

export interface Removal {
  /** In core/attestation/. */
  readonly file: string;
  /** The statement that it is in, for people, and for the table. */
  readonly check: string;
  /** What is removed of it. */
  readonly without: string;
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

export const files = [
  'aws.ts',
  'aws-document.ts',
  'aws-instance.ts',
  'aws-partition.ts',
  'cms.ts',
  'strict-json.ts',
  'sts-response.ts',
  'sts-token.ts',
] as const;

const folder = join(import.meta.dirname, '../../../core/attestation');

/** What no rule above finds: limits, and patterns whose groups are read. */
const byHand: readonly (readonly [file: string, find: string, instead: string])[] = [
  ['sts-response.ts', '/^arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts', '/arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts'],
  ['sts-response.ts', '(aws|aws-cn|aws-us-gov|aws-eusc):sts', '([a-z-]+):sts'],
  ['sts-response.ts', ':sts::([0-9]{12}):assumed-role', ':[a-z]+::([0-9]{12}):[a-z-]+'],
  ['sts-response.ts', '(aws:ec2-instance|[A-Za-z0-9_+=,.@-]{1,64})', '([A-Za-z0-9_+=,.@:-]{1,64})'],
  ['sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '([^/]+)$/'],
  ['sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))/'],
  ['sts-response.ts', "typeof value === 'string' ? value : ''", 'String(value)'],
  ['cms.ts', 'asn1js.fromBER(der, limits)', 'asn1js.fromBER(der, { maxNodes: 1e6, maxDepth: 1e6 })'],
  ['aws-instance.ts', 'Math.abs(', '('],
  ['aws-instance.ts', 'rootAttachedAt ?? Number.POSITIVE_INFINITY', 'rootAttachedAt ?? interfaceAttachedAt ?? 0'],
  ['aws-instance.ts', 'interfaceAttachedAt ?? Number.NEGATIVE_INFINITY', 'interfaceAttachedAt ?? rootAttachedAt ?? 0'],
  ['sts-token.ts', "'x-k8s-aws-id': expected.header, ", ''],
];

export function findRemovals(): readonly Removal[] {
  return [...files.flatMap(removalsIn), ...byHand.map(([file, find, instead]) => planted(file, find, instead))];
}

export function sourceOf(file: string): string {
  return readFileSync(join(folder, file), 'utf8');
}

function planted(file: string, find: string, instead: string): Removal {
  const text = sourceOf(file);
  const start = text.indexOf(find);
  if (start < 0 || text.includes(find, start + 1))
    throw new Error(`core/attestation/${file} must have this once: ${find}`);
  return { file, check: find, without: `→ ${instead}`, start, end: start + find.length, instead };
}

type Found = Pick<Expression, 'start' | 'end'> & { readonly type: string };

function removalsIn(file: string): Removal[] {
  const text = sourceOf(file);
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`);
  const removals: Removal[] = [];
  const add = (around: Found, part: Found, instead: string): void => {
    const { start, end } = part;
    removals.push({ file, check: line(text, around), without: line(text, part), start, end, instead });
  };
  const predicate = (around: Found, expression: Expression): void => {
    if (expression.type === 'LogicalExpression' && expression.operator !== '??')
      for (const operand of operands(expression, expression.operator))
        add(around, operand, expression.operator === '&&' ? 'true' : 'false');
  };
  new Visitor({
    IfStatement(node) {
      for (const operand of operands(node.test, '||')) {
        add(node, operand, 'false');
        const both = operands(operand, '&&');
        if (both.length > 1) for (const one of both) add(node, one, 'true');
      }
    },
    CallExpression(node) {
      const [first] = node.arguments;
      if (node.callee.type === 'Identifier' && node.callee.name === 'unless' && first !== undefined)
        add(node, first, 'true');
    },
    ReturnStatement(node) {
      const value = node.argument;
      if (value === null) return;
      predicate(node, value);
      if (value.type !== 'ConditionalExpression') return;
      const isNothing = ({ type, start, end }: Found) =>
        type === 'Identifier' && text.slice(start, end) === 'undefined';
      if (isNothing(value.consequent)) add(node, value.test, 'true');
      else if (isNothing(value.alternate)) add(node, value.test, 'false');
    },
    ArrowFunctionExpression(node) {
      if (node.expression) predicate(node, node.body as Expression);
    },
    Literal(node) {
      // Patterns with groups are read, not only matched.
      if ('regex' in node && node.raw !== null && !/\((?!\?)/.test(node.raw) && !node.raw.endsWith('/g'))
        add(node, node, '/[^]*/');
    },
  }).visit(program);
  return removals;
}

function operands(expression: Expression, operator: '&&' | '||'): readonly Expression[] {
  if (expression.type === 'ParenthesizedExpression') return operands(expression.expression, operator);
  if (expression.type !== 'LogicalExpression' || expression.operator !== operator) return [expression];
  return [...operands(expression.left, operator), ...operands(expression.right, operator)];
}

/** On one line, and not longer than people read. */
function line(text: string, { start, end }: Found): string {
  const flat = text.slice(start, end).replace(/\s+/g, ' ');
  return flat.length > 160 ? `${flat.slice(0, 157)}…` : flat;
}
