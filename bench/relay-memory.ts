/** What the relay takes to start, and to hold, in a cluster that has many requests already. docs/performance.md */
import type { ControlPlane } from '../test/harness/control-plane.ts';

export interface RelayMemoryPlan {
  /** How many requests are there when the relay starts; each is measured by itself. */
  readonly counts: readonly number[];
}

export interface RelayMemoryResult {
  readonly rows: readonly RelayMemoryRow[];
}

export interface RelayMemoryRow {
  /** What was started. */
  readonly program: string;
  readonly present: number;
  /** What those requests are: issued long ago, waiting for an endpoint that is slow, … */
  readonly state: string;
  /** From the start of the process until everything was listed, in seconds. */
  readonly started: number;
  /** Of the process, all threads, until then. */
  readonly cpuSeconds: number;
  /** The highest resident set until the measurement's end, and the one that is left after a while. */
  readonly peakMegabytes: number;
  readonly settledMegabytes: number;
}

export async function measureRelayMemory(
  _controlPlane: ControlPlane,
  _plan: RelayMemoryPlan,
  _say: (text: string) => void,
): Promise<RelayMemoryResult> {
  return { rows: [] };
}

export function renderRelayMemory({ rows }: RelayMemoryResult): string {
  const cells = rows.map((row) => [
    row.program,
    String(row.present),
    row.state,
    `${row.started.toFixed(2)} s`,
    `${row.cpuSeconds.toFixed(2)} s`,
    row.peakMegabytes.toFixed(0),
    row.settledMegabytes.toFixed(0),
  ]);
  const head = ['', 'present', 'of them', 'listed after', 'CPU', 'peak MB', 'after 10 s'];
  const lines = [head, head.map(() => '---'), ...cells].map((line) => `| ${line.join(' | ')} |`);
  return `${lines.join('\n')}\n`;
}
