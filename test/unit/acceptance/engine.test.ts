/** The engine of the acceptance run: order, interruption, and what is left. */
import { expect, test } from 'vitest';
import { runAcceptance } from '../../../acceptance/engine.ts';
import type { RunOptions } from '../../../acceptance/engine.ts';
import { page } from '../../../acceptance/report.ts';
import { NotShown } from '../../../acceptance/world/recorder.ts';
import type { Site, Step } from '../../../acceptance/world/step.ts';
import type { LeftBehind } from '../../../acceptance/world/undo.ts';

function step(id: string, run: (site: Site) => Promise<void>, needs: readonly string[] = []): Step {
  return { id, title: id, minute: 0, shows: 'it', needs, statements: () => [], run };
}

/** A thing that is made and removed; `left`: what its removal leaves. */
function effect(site: Site, what: string, undone: string[], left: readonly LeftBehind[] | Error = []): void {
  site.undo.register({
    what,
    command: `remove ${what}`,
    async undo() {
      undone.push(what);
      if (left instanceof Error) throw left;
      return left;
    },
  });
}

async function run(steps: readonly Step[], more: Partial<RunOptions> = {}) {
  const lines: string[] = [];
  let time = 0;
  const report = await runAcceptance({
    steps,
    // The engine hands it through to the steps.
    site: { name: 'accept-1', place: { partition: 'aws', account: '1', region: 'r' } } as RunOptions['site'],
    calls: new Map([['CloudFormation CreateStack', 4]]),
    extras: new Set(),
    keep: false,
    signal: new AbortController().signal,
    now: () => (time += 1_000),
    log: (line) => void lines.push(line),
    ...more,
  });
  return { report, lines };
}

test('a step fails by one finding, and those that need it are skipped; the others run', async () => {
  const { report } = await run([
    step('one', async ({ check }) => check('a', async () => 'seen')),
    step('two', async ({ check }) => {
      await check('b', async () => Promise.reject(new Error('no')));
      await check('c', async () => 'after it');
    }),
    step('three', async () => undefined, ['one', 'two']),
    step('four', async ({ seen }) => seen('d', 'looked'), ['one']),
    step('five', async () => Promise.reject(new Error('thrown'))),
  ]);
  expect(report.steps.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
    'one passed',
    'two failed',
    'three skipped',
    'four passed',
    'five failed',
  ]);
  expect(report.steps[1]?.findings).toEqual([
    { what: 'b', outcome: 'fails', detail: 'no' },
    { what: 'c', outcome: 'holds', detail: 'after it' },
  ]);
  expect(report.passed).toBe(false);
});

test('everything is removed, the newest first, even if one removal fails', async () => {
  const undone: string[] = [];
  const waits: LeftBehind = { what: 'key', why: 'a week', command: 'look', expected: true };
  const { report } = await run([
    step('one', async (site) => {
      effect(site, 'role', undone);
      effect(site, 'stack', undone, new Error('DELETE_FAILED'));
      effect(site, 'key', undone, [waits]);
      throw new Error('broken');
    }),
  ]);
  expect(undone).toEqual(['key', 'stack', 'role']);
  expect(report.left).toEqual([
    waits,
    { what: 'stack', why: 'could not be removed: DELETE_FAILED', command: 'remove stack' },
  ]);
  expect(report.passed).toBe(false);
});

test.each([
  [[], true],
  [[{ what: 'key', why: 'a week', command: '', expected: true as const }], true],
  [[{ what: 'table', why: 'stays', command: '' }], false],
])('what is left decides too: %j', async (left, passed) => {
  const { report } = await run([step('one', async (site) => effect(site, 'x', [], left))]);
  expect(report.passed).toBe(passed);
});

test('interrupted: the step ends at once, later effects are refused, and everything is removed', async () => {
  const interrupt = new AbortController();
  const undone: string[] = [];
  let late: unknown;
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const { report } = await run(
    [
      step('one', async (site) => {
        effect(site, 'stack', undone);
        interrupt.abort();
        await held;
        try {
          effect(site, 'late', undone);
        } catch (error) {
          late = error;
        }
      }),
      step('two', async () => undefined),
    ],
    { signal: interrupt.signal },
  );
  expect(report.steps.map(({ outcome }) => outcome)).toEqual(['failed', 'skipped']);
  expect(undone).toEqual(['stack']);
  release();
  await held;
  await Promise.resolve();
  expect(String(late)).toContain('everything is being removed');
});

test('--keep removes nothing and lists everything', async () => {
  const undone: string[] = [];
  const { report } = await run([step('one', async (site) => effect(site, 'stack', undone))], { keep: true });
  expect(undone).toEqual([]);
  expect(report.left).toEqual([{ what: 'stack', why: '--keep', command: 'remove stack' }]);
  expect(report.passed).toBe(true);
});

test('what an emulator cannot show is no failure, and what it shows all the same holds', async () => {
  const limits = { 'leading-keys': 'it passes every key' };
  const emulator = { name: 'x', endpoint: '', limits, adapt: (template: object) => template };
  const site = { name: 'accept-1', place: { partition: 'aws', account: '1', region: 'r' }, emulator };
  const { report } = await run(
    [
      step('one', async ({ check }) => {
        await check('a', async () => Promise.reject(new Error('permitted')), 'leading-keys');
        await check('b', async () => Promise.reject(new Error('permitted')), 'concurrency');
        await check('c', async () => 'refused', 'leading-keys');
      }),
      step('two', async ({ check }) => check('d', async () => Promise.reject(new Error('x')), 'leading-keys')),
    ],
    { site: site as RunOptions['site'] },
  );
  expect(report.steps.map(({ outcome, notShown }) => [outcome, notShown])).toEqual([
    ['failed', ['it passes every key']],
    ['notShown', ['it passes every key']],
  ]);
  expect(report.steps[0]?.findings.map(({ outcome, detail }) => `${outcome} ${detail}`)).toEqual([
    'notShown it passes every key (permitted)',
    'fails permitted',
    'holds refused',
  ]);
});

test('a right that the login lacks is a failure, whatever the emulator cannot show', async () => {
  const refusal = Object.assign(new Error('not authorized'), { name: 'AccessDeniedException' });
  const limits = { alarms: 'it evaluates none' };
  const emulator = { name: 'x', endpoint: '', limits, adapt: (template: object) => template };
  const site = { name: 'accept-1', place: { partition: 'aws', account: '1', region: 'r' }, emulator };
  const one = step('one', async ({ check }) => check('a', async () => Promise.reject(refusal), 'alarms'));
  const { report } = await run([one], { site: site as RunOptions['site'] });
  expect(report.steps.map(({ outcome }) => outcome)).toEqual(['failed']);
});

test('what did not come in time, and what was not asked for, is not shown; neither is a silent pass', async () => {
  const late = step('late', async ({ check, notShown }) => {
    await check('a', async () => 'seen');
    await check('b', async () => Promise.reject(new NotShown('no event after a quarter of an hour')));
    notShown('c', 'only with --idle MINUTES');
  });
  let ran = 0;
  const extra = { ...step('extra', async () => void (ran += 1)), extra: 'restore' as const };
  const { report, lines } = await run([late, extra]);
  expect(report.steps.map(({ outcome, notShown }) => [outcome, notShown])).toEqual([
    ['passed', ['no event after a quarter of an hour', 'only with --idle MINUTES']],
    ['notShown', ['only with --with restore']],
  ]);
  expect([ran, report.passed]).toEqual([0, true]);
  expect(lines).toContain('  not shown here: only with --with restore');
  expect(page(report)).toContain(
    '| late | passed; not shown here: no event after a quarter of an hour; only with --idle MINUTES |',
  );
  await run([extra], { extras: new Set(['restore'] as const) });
  expect(ran).toBe(1);
});

test('the page shows every finding, what is left, and the cost; text of others forges nothing', async () => {
  const { report } = await run([
    step('one', async (site) => {
      await site.check('a | b', async () => '<b>\n## forged');
      effect(site, 'key', [], [{ what: 'key k', why: 'a week', command: 'aws kms describe-key', expected: true }]);
    }),
  ]);
  const text = page(report);
  expect(text).toContain('- ✓ a \\| b: &lt;b> ## forged\n');
  expect(text).toContain('- key k: a week; `aws kms describe-key`');
  expect(text).toContain('## Left behind');
  expect(report.cost.dollars).toBeCloseTo((2 * 4.7) / 730, 6);
});
