/**
 * Finds the checks in a source file, so that a new check is tried without an entry in a list. To remove a check is to
 * replace its condition, so that the check never refuses.
 *
 *   if (a || b) …             a, then b, is never so; if (a && b) …: also a, then b, is always so
 *   violationUnless(a, …)     a always holds
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
import { parseSync, Visitor } from 'oxc-parser';
import type { Expression } from 'oxc-parser';
import { sourceOf } from './mutant.ts';
import type { Mutant } from './mutant.ts';

type Found = Pick<Expression, 'start' | 'end'> & { readonly type: string };

export function checksIn(file: string, { choices }: { readonly choices: boolean }): readonly Mutant[] {
  const text = sourceOf(file);
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`);
  const removals = new Map<string, Mutant>();
  const mutant = (around: Found, { start, end }: Found, instead: string, without: string): Mutant => {
    return { file, check: line(text, around), without, start, end, instead, isExpression: true };
  };
  const add = (around: Found, part: Found, instead: string): void => {
    const key = `${part.start} ${part.end} ${instead}`;
    // The first rule that finds it names the larger statement.
    if (!removals.has(key)) removals.set(key, mutant(around, part, instead, line(text, part)));
  };
  const both = (around: Found, part: Found): void => {
    // Which of the two it was has to be in the table.
    for (const instead of ['true', 'false']) {
      const key = `${part.start} ${part.end} ${instead}`;
      if (!removals.has(key)) removals.set(key, mutant(around, part, instead, `${line(text, part)} → ${instead}`));
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
      if (callee.type === 'Identifier' && callee.name === 'violationUnless') add(node, first, 'true');
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

/** On one line, shortened where it is long. */
function line(text: string, { start, end }: Found): string {
  const flat = text.slice(start, end).replace(/\s+/g, ' ');
  return flat.length > 160 ? `${flat.slice(0, 157)}…` : flat;
}
