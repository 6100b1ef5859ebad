/**
 * Node's CPU profiles as folded stacks, one `caller;callee count` a line, the input of flame graph tools
 * (inferno-flamegraph, flamegraph.pl, speedscope). docs/internals/performance.md
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The fields of a profile of `node --cpu-prof` that are used here (V8's Profiler.Profile). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    /** Samples in which this was the innermost function. */
    readonly hitCount?: number;
    readonly children?: readonly number[];
  }[];
}

/** Frames that stand for no work. */
const idleFrames = new Set(['(idle)', '(root)']);

/** Counts are samples, a millisecond each. Paths are relative to `root`; a file outside is shown by its name only. */
export function foldProfile({ nodes }: CpuProfile, root: string): string {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const called = new Set(nodes.flatMap(({ children = [] }) => children));
  const counts = new Map<string, number>();
  const waiting = nodes
    .filter(({ id }) => !called.has(id))
    .map((node) => ({
      node,
      stack: idleFrames.has(node.callFrame.functionName) ? [] : [frameOf(node.callFrame, root)],
    }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, stack } = next;
    const { hitCount = 0, children = [] } = node;
    if (hitCount > 0 && stack.length > 0) {
      const line = stack.join(';');
      counts.set(line, (counts.get(line) ?? 0) + hitCount);
    }
    for (const id of children) {
      const child = byId.get(id);
      if (child === undefined || idleFrames.has(child.callFrame.functionName)) continue;
      waiting.push({ node: child, stack: [...stack, frameOf(child.callFrame, root)] });
    }
  }
  return [...counts]
    .map(([stack, count]) => `${stack} ${count}\n`)
    .toSorted()
    .join('');
}

/** Writes the folded stacks beside each profile of the folder, and returns the names of the new files. */
export function foldProfilesIn(folder: string, root: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => {
      const profile = JSON.parse(readFileSync(join(folder, name), 'utf8')) as CpuProfile;
      const folded = name.replace(/cpuprofile$/, 'folded');
      writeFileSync(join(folder, folded), foldProfile(profile, root));
      return folded;
    });
}

/** Without semicolons, which separate frames. */
function frameOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame'], root: string): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  const place = placeOf(url, root);
  return (place === '' ? name : `${name} ${place}:${lineNumber + 1}`).replaceAll(';', ':');
}

function placeOf(url: string, root: string): string {
  if (!url.startsWith('file:') && !url.startsWith('/')) return url; // node:internal/…, wasm://…, or nothing
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  const within = relative(root, path);
  return within.startsWith('..') ? basename(path) : within;
}
