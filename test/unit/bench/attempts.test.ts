import { expect, test } from 'vitest';
import { attempted, leaveOut } from '../../../bench/attempts.ts';
import type { Report } from '../../../bench/attempts.ts';
import { descendants, countFromNow, usageOfGroups } from '../../../bench/process-usage.ts';

const newReport = (): Report & { readonly said: string[] } => {
  const said: string[] = [];
  return { leftOut: [], failed: [], said, say: (what) => said.push(what) };
};

test('what fails is written down with its reason, and the next goes on', async () => {
  const report = newReport();
  const broken = await attempted(report, 'one', () => Promise.reject(new Error('no such tool')));
  const fine = await attempted(report, 'other', () => Promise.resolve(7));
  expect([broken, fine]).toEqual([undefined, 7]);
  expect(report.failed).toEqual([{ what: 'one', why: 'no such tool' }]);
  expect(report.said).toEqual(['one FAILED: no such tool']);
});

test('what the machine lacks is reported once, however often it is tried, and is no failure', () => {
  const report = newReport();
  leaveOut(report, 'LocalStack', 'no Java');
  leaveOut(report, 'LocalStack', 'no Java');
  expect(report).toMatchObject({ leftOut: [{ what: 'LocalStack', why: 'no Java' }], failed: [] });
  expect(report.said).toHaveLength(1);
});

test.skipIf(process.platform !== 'linux')(
  'processes are counted from now on, together, without those that have ended',
  () => {
    const gone = 2 ** 22 + 1; // above what Linux gives out
    const groups = [{ name: 'us', pids: () => [process.pid, gone] }];
    const before = countFromNow(groups);
    const { user, system } = process.cpuUsage();
    for (const end = performance.now() + 60; performance.now() < end;);
    const spent = process.cpuUsage({ user, system });
    const [us] = usageOfGroups(groups, before);
    expect(us).toMatchObject({ name: 'us', processes: 1 });
    // The kernel counts in hundredths of a second.
    expect(Math.abs(us!.cpuSeconds - (spent.user + spent.system) / 1e6)).toBeLessThan(0.05);
    expect(us!.peakMegabytes).toBeGreaterThan(10);
    expect(usageOfGroups(groups)[0]!.cpuSeconds).toBeGreaterThan(us!.cpuSeconds);
    expect(descendants().every(({ pid }) => pid !== process.pid)).toBe(true);
  },
);
