import { readFileSync, writeFileSync } from 'node:fs';

/** What the kernel says about a process (proc(5)): the same for Node and Go, and nothing the process could colour. */
export interface Usage {
  /** User and system time since it started, all threads. */
  readonly cpuSeconds: number;
  /** Highest resident set since it started or since `forgetPeak`. */
  readonly peakMegabytes: number;
}

/** USER_HZ: 100 on every Linux that Node runs on, whatever the kernel's own tick. */
const ticksPerSecond = 100;

export function usageOf(pids: readonly number[]): Usage {
  const each = pids.map((pid) => ({
    cpuSeconds: (statField(pid, 14) + statField(pid, 15)) / ticksPerSecond,
    peakMegabytes: peakKilobytes(pid) / 1_024,
  }));
  return {
    cpuSeconds: each.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    // A sum of peaks that need not have been at the same moment: at most too much.
    peakMegabytes: each.reduce((sum, { peakMegabytes }) => sum + peakMegabytes, 0),
  };
}

/** From here on the peak is counted anew (proc(5), clear_refs). */
export function forgetPeak(pids: readonly number[]): void {
  for (const pid of pids) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** When the kernel started it, on the clock of performance.now(), to about 10 ms: nobody's own word is needed. */
export function startedAt(pid: number): number {
  const uptimeMilliseconds = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1_000;
  const age = uptimeMilliseconds - (statField(pid, 22) / ticksPerSecond) * 1_000;
  return performance.now() - age;
}

/** Fields are counted from 1, as in proc(5). The name in field 2 may hold spaces and brackets: read on behind it. */
function statField(pid: number, field: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[field - 3]);
}

function peakKilobytes(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
