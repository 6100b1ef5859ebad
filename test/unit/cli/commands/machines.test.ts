import { expect, test } from 'vitest';
import { audited, newFolder } from '../register.ts';
import { now, run } from '../run.ts';

const id = `aws#i-${'a'.repeat(17)}`;
const world = { userName: () => 'ada' };

test('allowed, listed, allowed again, removed; each with an audit item', async () => {
  const folder = await newFolder();
  const machines = (...argv: readonly string[]) => run(['machines', ...argv, '--data', folder.path], { world });
  const allowed = await machines('allow', id, '--reason', 'rack 7');
  expect([allowed.code, allowed.out]).toEqual([
    0,
    expect.stringMatching(/^allowed: aws#i-a+ \(audit item \w{26}, by ada\)\n$/),
  ]);
  await machines('allow', 'aws#i-0*', '--reason', 'the batch of May');
  await machines('allow', id, '--reason', 'rack 8');
  expect((await machines('list')).out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['MACHINE', 'SINCE', 'BY', 'REASON'],
    ['aws#i-0*', '2026-06-01T12:00:00Z', 'ada', 'the batch of May'],
    [id, '2026-06-01T12:00:00Z', 'ada', 'rack 8'],
    [''],
  ]);
  const removed = await machines('remove', 'aws#i-0*', '--reason', 'all there');
  expect([removed.code, removed.out]).toEqual([0, expect.stringMatching(/^removed: aws#i-0\* /)]);
  expect(JSON.parse((await machines('list', '-o', 'json')).out)).toEqual([
    { name: id, addedAt: '2026-06-01T12:00:00Z', by: 'ada', reason: 'rack 8' },
  ]);
  const look = { now, nodeName: 'n', once: [], addresses: [] };
  expect((await folder.store.lookup({ ...look, machines: [id] })).listed).toBe(true);
  expect((await folder.store.lookup({ ...look, machines: ['aws#i-01'] })).listed).toBe(false);
  const items = await audited(folder);
  expect(items.map(({ action, subject, by }) => `${action} ${subject} ${by}`).toSorted()).toEqual(
    [`allow ${id} ada`, `allow ${id} ada`, 'allow aws#i-0* ada', 'remove aws#i-0* ada'].toSorted(),
  );
});

test('an entry that does not exist cannot be removed, and leaves no audit item', async () => {
  const folder = await newFolder();
  for (const name of [id, 'aws#i-*']) {
    const ran = await run(['machines', 'remove', name, '--reason', 'x', '--data', folder.path]);
    expect([ran.code, ran.err]).toEqual([4, expect.stringContaining('is not on the list')]);
  }
  expect(await audited(folder)).toEqual([]);
});

test.each<readonly [string, readonly string[], RegExp]>([
  ['no reason', [id], /--reason/],
  ['no provider', [`i-${'a'.repeat(17)}`, '--reason', 'x'], /begins with its provider: aws#i-a/],
  ['an invalid id', ['aws#i-12', '--reason', 'x'], /hexadecimal/],
  ['blanks', ['aws#i- *', '--reason', 'x'], /looks like/],
  ['no name at all', ['aws#', '--reason', 'x'], /looks like/],
])('%s is a usage error', async (_, argv, message) => {
  const folder = await newFolder();
  const ran = await run(['machines', 'allow', ...argv, '--data', folder.path]);
  expect(ran.code).toBe(2);
  expect(ran.err).toMatch(message);
  expect(await folder.register.listMachines()).toEqual([]);
});
