import { expect, test } from 'vitest';
import { tryAndReport, leaveOut } from '../../../bench/attempts.ts';
import type { Report } from '../../../bench/attempts.ts';
import { descendants, countFromNow, usageOfGroups } from '../../../bench/measure/process-usage.ts';

const newReport = (): Report & { readonly lines: string[] } => {
  const lines: string[] = [];
  return { leftOut: [], failed: [], lines, say: (what) => lines.push(what) };
};

test('what fails is written down with its reason, and the next goes on', async () => {
  const report = newReport();
  const broken = await tryAndReport(report, 'one', () => Promise.reject(new Error('no such tool')));
  const fine = await tryAndReport(report, 'other', () => Promise.resolve(7));
  expect([broken, fine]).toEqual([undefined, 7]);
  expect(report.failed).toEqual([{ what: 'one', why: 'no such tool' }]);
  expect(report.lines).toEqual(['one FAILED: no such tool']);
});

test('what the machine lacks is reported once, however often it is tried, and is no failure', () => {
  const report = newReport();
  leaveOut(report, 'LocalStack', 'no Java');
  leaveOut(report, 'LocalStack', 'no Java');
  expect(report).toMatchObject({ leftOut: [{ what: 'LocalStack', why: 'no Java' }], failed: [] });
  expect(report.lines).toHaveLength(1);
});

test.skipIf(process.platform !== 'linux')(
  'processes are counted from now on, together, without those that have ended',
  () => {
    const gone = 2 ** 22 + 1; // above what Linux gives out
    const groups = [{ name: 'us', pids: () => [process.pid, gone] }];
    const seconds = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1e6;
    const aroundIt = process.cpuUsage();
    const before = countFromNow(groups);
    const withinIt = process.cpuUsage();
    for (const end = performance.now() + 60; performance.now() < end;);
    const atLeast = seconds(process.cpuUsage(withinIt));
    const [us] = usageOfGroups(groups, before);
    const atMost = seconds(process.cpuUsage(aroundIt));
    expect(us).toMatchObject({ name: 'us', processes: 1 });
    // The kernel counts user and system time in hundredths of a second each, before and after.
    expect(us!.cpuSeconds).toBeGreaterThan(atLeast - 0.04);
    expect(us!.cpuSeconds).toBeLessThan(atMost + 0.04);
    expect(us!.peakMegabytes).toBeGreaterThan(10);
    expect(usageOfGroups(groups)[0]!.cpuSeconds).toBeGreaterThan(us!.cpuSeconds);
    expect(descendants().every(({ pid }) => pid !== process.pid)).toBe(true);
  },
);
