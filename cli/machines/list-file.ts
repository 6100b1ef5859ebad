/**
 * A file with machines for the list, one machine a line: its name, then fields in any order.
 *
 *     # rack 7
 *     tpm#9f86d081884c7d65… node=worker-3 address=10.0.7.3 address=fd00:7::3 dns=worker-3.example.com
 *     aws#i-0123456789abcdef0
 *
 * Blanks separate the fields. A field that begins with `#` begins a comment. Only exact names: a pattern is an argument.
 */
import type { ListedMachine } from './entry.ts';
import { readEntry } from './entry.ts';
import { quoted } from '../../core/outcome/printable-text.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

export interface ListedLine {
  /** From 1. */
  readonly line: number;
  readonly machine: ListedMachine;
}

/** The machines, or the problem of every wrong line. */
export function readListFile(text: string): Result<readonly ListedLine[], readonly string[]> {
  const machines: ListedLine[] = [];
  const problems: string[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, content] of text.split('\n').entries()) {
    const line = index + 1;
    const fields = fieldsOf(content);
    if (fields.length === 0) continue;
    const read = readLine(fields);
    if (!read.ok) {
      problems.push(`${line}: ${read.problem}`);
      continue;
    }
    const { name, nodeName } = read.value;
    // One of two lines would be replaced, or its machine refused: which one is the operator's decision.
    for (const once of [name, ...(nodeName === undefined ? [] : [`node=${nodeName}`])]) {
      const earlier = lineOf.get(once);
      if (earlier !== undefined) problems.push(`${line}: line ${earlier} has ${once} already`);
      else lineOf.set(once, line);
    }
    machines.push({ line, machine: read.value });
  }
  if (problems.length > 0) return failure(problems);
  return machines.length === 0 ? failure(['1: the file names no machine']) : success(machines);
}

function fieldsOf(line: string): readonly string[] {
  const fields = line.split(/[ \t\r]+/).filter((field) => field !== '');
  const comment = fields.findIndex((field) => field.startsWith('#'));
  return comment < 0 ? fields : fields.slice(0, comment);
}

function readLine([name = '', ...fields]: readonly string[]): Result<ListedMachine, string> {
  if (name.includes('*')) return failure('A file has exact names only; countersign machines allow adds one pattern.');
  const values = new Map<string, string[]>([
    ['node', []],
    ['address', []],
    ['dns', []],
  ]);
  for (const field of fields) {
    const at = field.indexOf('=');
    const list = at < 0 ? undefined : values.get(field.slice(0, at));
    if (list === undefined) return failure(`${quoted(field)} is not node=, address= or dns=`);
    list.push(field.slice(at + 1));
  }
  const [node, ...others] = values.get('node') ?? [];
  if (others.length > 0) return failure('A machine has one node name.');
  return readEntry({ name, node, addresses: values.get('address') ?? [], dns: values.get('dns') ?? [] });
}
