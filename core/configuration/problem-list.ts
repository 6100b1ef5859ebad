/** Collects the problems of one file, each with its line, column and path. */
import { isMap, isScalar } from 'yaml';
import type { Document, LineCounter, Pair } from 'yaml';
import { quoted } from '../outcome/printable-text.ts';
import type { Path } from './fields/place.ts';

/** `path` reads like `clusters.demo.profiles["k8s.example.com/web"].ca`; line and column count from 1. */
export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
}

export interface ProblemList {
  add(offset: number, path: Path, message: string): void;
  isEmpty(): boolean;
  /** In the order of the file. */
  sorted(): readonly Problem[];
}

export function problemList(file: string, lines: LineCounter): ProblemList {
  // A mistake in `defaults` is found in every cluster and reported once.
  const problems = new Map<string, Problem>();
  return {
    add(offset, path, message) {
      const { line, col } = lines.linePos(offset);
      const problem = {
        file,
        line: Math.max(line, 1),
        column: Math.max(col, 1),
        path: pathText(path),
        message,
      };
      const key = JSON.stringify(problem);
      if (!problems.has(key)) problems.set(key, problem);
    },
    isEmpty: () => problems.size === 0,
    sorted: () => [...problems.values()].sort((a, b) => a.line - b.line || a.column - b.column),
  };
}

/** The position of the value, or of its key if `atKey`. For a missing value: of the key of the map that lacks it. */
export function offsetOf(document: Document, path: Path, atKey: boolean): number {
  let node: unknown = document.contents;
  let offset = rangeStart(node) ?? 0;
  for (const [depth, part] of path.entries()) {
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find(({ key }) => isScalar(key) && key.value === part);
      if (pair === undefined) return offset;
      node = pair.value;
      const keyStart = rangeStart(pair.key) ?? offset;
      const last = depth === path.length - 1;
      offset = last && !atKey && isScalar(node) ? (rangeStart(node) ?? keyStart) : keyStart;
    } else {
      node = document.getIn(path.slice(0, depth + 1), true);
      offset = rangeStart(node) ?? offset;
    }
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];
}

export function pathText(path: Path): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      if (/^[A-Za-z0-9_-]+$/.test(part)) return index === 0 ? part : `.${part}`;
      return `[${quoted(part)}]`;
    })
    .join('');
}
