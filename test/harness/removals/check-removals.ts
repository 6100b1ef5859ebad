/**
 * Checks found in a source rather than listed by hand: a new one is tried the day it is written. Removing one is replacing
 * its condition so that it never refuses.
 *
 *   if (a || b) …             a, then b, is never so; if (a && b) …: also a, then b, is always so
 *   unless(a, …)              a always holds
 *   return a && b             a, then b, is always so (predicates); a || b: never so
 *   return a ? undefined : …  whatever a says, nothing is wrong
 *   /…/                       matches everything
 *
 * and where every choice is a decision (`choices`):
 *
 *   a && b, a || b            wherever they stand
 *   a ? b : c                 always b, then always c
 *   case a:                   is never met, unless nothing would come of it either
 *   list.find(… => a)         a is always so, then never so; some, every and filter alike
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import type { Expression } from 'oxc-parser';

export interface Removal {
  readonly file: string;
  /** The statement that it is in, for people, and for the table. */
  readonly check: string;
  /** What is removed of it. */
  readonly without: string;
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

/** In one of our folders. */
export interface Source {
  readonly folder: string;
  readonly file: string;
}

export function sourceOf({ folder, file }: Source): string {
  return readFileSync(join(folder, file), 'utf8');
}

/** What no rule finds: `find`, which stands once in what stands once in the file. */
export function planted(source: Source, within: string, find: string, instead: string): Removal {
  const text = sourceOf(source);
  const around = text.indexOf(within);
  const inside = within.indexOf(find);
  if (around < 0 || text.includes(within, around + 1) || inside < 0 || within.includes(find, inside + 1))
    throw new Error(`${source.file} must have this once: ${within}`);
  const start = around + inside;
  return { file: source.file, check: within, without: `→ ${instead}`, start, end: start + find.length, instead };
}

type Found = Pick<Expression, 'start' | 'end'> & { readonly type: string };

export function removalsIn(source: Source, { choices = false } = {}): readonly Removal[] {
  const { file } = source;
  const text = sourceOf(source);
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`);
  const removals = new Map<string, Removal>();
  const add = (around: Found, part: Found, instead: string): void => {
    const { start, end } = part;
    const key = `${start} ${end} ${instead}`;
    // The first rule that finds it names the larger statement.
    if (!removals.has(key))
      removals.set(key, { file, check: line(text, around), without: line(text, part), start, end, instead });
  };
  const both = (around: Found, part: Found): void => {
    // Which of the two it was has to be in the table.
    for (const instead of ['true', 'false']) {
      const { start, end } = part;
      const key = `${start} ${end} ${instead}`;
      if (removals.has(key)) continue;
      const without = `${line(text, part)} → ${instead}`;
      removals.set(key, { file, check: line(text, around), without, start, end, instead });
    }
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
        const conjuncts = operands(operand, '&&');
        if (conjuncts.length > 1) for (const one of conjuncts) add(node, one, 'true');
      }
    },
    CallExpression(node) {
      const [first] = node.arguments;
      const { callee } = node;
      if (first === undefined) return;
      if (callee.type === 'Identifier' && callee.name === 'unless') add(node, first, 'true');
      if (!choices || callee.type !== 'MemberExpression' || first.type !== 'ArrowFunctionExpression') return;
      if (first.expression && /\.(some|every|find|filter)$/.test(text.slice(callee.start, callee.end)))
        both(node, first.body);
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
    ConditionalExpression(node) {
      if (choices) both(node, node.test);
    },
    LogicalExpression(node) {
      if (choices) predicate(node, node);
    },
    SwitchStatement({ cases }) {
      if (!choices) return;
      for (const [index, one] of cases.entries()) {
        const [first] = cases.slice(index).find(({ consequent }) => consequent.length > 0)?.consequent ?? [];
        // Where nothing comes of it, as where no case is met.
        const isIdle = first?.type === 'ReturnStatement' && text.slice(first.start, first.end) === 'return undefined;';
        if (one.test !== null && !isIdle) add(one, one.test, 'NaN');
      }
    },
    Literal(node) {
      // Patterns with groups are read, not only matched.
      if ('regex' in node && node.raw !== null && !/\((?!\?)/.test(node.raw) && !node.raw.endsWith('/g'))
        add(node, node, '/[^]*/');
    },
  }).visit(program);
  return [...removals.values()];
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
