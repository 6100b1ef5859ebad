import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** What the kernel reports about a process (proc(5)), alike for Node and Go. */
export interface Usage {
  /** User and system time since it started, all threads. */
  readonly cpuSeconds: number;
  /** Highest resident set since it started or since `forgetPeak`. */
  readonly peakMegabytes: number;
}

/** USER_HZ is 100 on every Linux that Node.js runs on, with any tick of the kernel. */
const ticksPerSecond = 100;

export function usageOf(pid: number): Usage {
  return {
    cpuSeconds: (statField(pid, 14) + statField(pid, 15)) / ticksPerSecond,
    peakMegabytes: peakKilobytes(pid) / 1_024,
  };
}

/** Processes of one kind. Their ids are read again each time: a Lambda function has as many as it needs. */
export interface ProcessGroup {
  readonly name: string;
  readonly pids: () => readonly number[];
}

/** The sum over all processes of a group. */
export interface GroupUsage extends Usage {
  readonly name: string;
  readonly processes: number;
}

/** The CPU time of each process so far, by its pid. Resets their memory peaks. */
export function countFromNow(groups: readonly ProcessGroup[]): ReadonlyMap<number, number> {
  const before = new Map<number, number>();
  for (const pid of groups.flatMap(({ pids }) => pids())) {
    const usage = usageIfAlive(pid);
    if (usage === undefined) continue;
    before.set(pid, usage.cpuSeconds);
    forgetPeak(pid);
  }
  return before;
}

/** What each group used since `before`; a process that started later is counted from its start, an ended one is missing. */
export function usageOfGroups(
  groups: readonly ProcessGroup[],
  before: ReadonlyMap<number, number> = new Map(),
): GroupUsage[] {
  return groups.map(({ name, pids }) => {
    const alive = pids().flatMap((pid) => {
      const usage = usageIfAlive(pid);
      return usage === undefined ? [] : [{ ...usage, cpuSeconds: usage.cpuSeconds - (before.get(pid) ?? 0) }];
    });
    // In a group of several, those without CPU time are left out: functions of an earlier deployment linger.
    const usages = alive.length > 1 ? alive.filter(({ cpuSeconds }) => cpuSeconds > 0) : alive;
    return {
      name,
      processes: usages.length,
      cpuSeconds: usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
      peakMegabytes: usages.reduce((sum, { peakMegabytes }) => sum + peakMegabytes, 0),
    };
  });
}

function usageIfAlive(pid: number): Usage | undefined {
  try {
    return usageOf(pid);
  } catch {
    return undefined;
  }
}

/** The processes that this one or its children started and that still run, with their command lines. */
export function descendants(pid = process.pid): readonly { readonly pid: number; readonly command: string }[] {
  return childrenOf(pid).flatMap((child) => [{ pid: child, command: commandOf(child) }, ...descendants(child)]);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trimEnd();
  } catch {
    return ''; // it ended meanwhile
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

/** Resets the peak of a process (proc(5), clear_refs). */
function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** The CPU time of all children that have ended, and of their children. Exact to a tick. */
export function endedChildrenCpuSeconds(): number {
  return (statField(process.pid, 16) + statField(process.pid, 17)) / ticksPerSecond;
}

/** When the kernel started it, on the clock of performance.now(), to about 10 ms. */
export function startedAt(pid: number): number {
  const uptimeMilliseconds = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1_000;
  const age = uptimeMilliseconds - (statField(pid, 22) / ticksPerSecond) * 1_000;
  return performance.now() - age;
}

/**
 * Returns a function that returns the share of all processors that other processes than this one and its children have
 * used since.
 */
export function watchForOthers(): () => number {
  const begin = { at: performance.now(), machine: machineSeconds(), family: familySeconds() };
  return () => {
    const capacity = ((performance.now() - begin.at) / 1_000) * availableParallelism();
    const others = machineSeconds() - begin.machine - (familySeconds() - begin.family);
    return Math.max(0, others) / capacity;
  };
}

/** user, nice, system, irq, softirq and steal; neither idle nor iowait, and guest time is in user. */
function machineSeconds(): number {
  const [, ...ticks] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/ +/) ?? [];
  return [0, 1, 2, 5, 6, 7].reduce((sum, index) => sum + Number(ticks[index]), 0) / ticksPerSecond;
}

/** CPU time of this process and its descendants. The kernel adds the time of an ended process to its parent's. */
function familySeconds(pid = process.pid): number {
  try {
    const children = childrenOf(pid);
    const own = [14, 15, 16, 17].reduce((sum, field) => sum + statField(pid, field), 0) / ticksPerSecond;
    return children.reduce((sum, child) => sum + familySeconds(child), own);
  } catch {
    return 0; // it ended meanwhile
  }
}

/** Fields are counted from 1, as in proc(5). The name in field 2 may hold spaces and brackets, so the fields are read from behind it. */
function statField(pid: number, field: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[field - 3]);
}

function peakKilobytes(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
