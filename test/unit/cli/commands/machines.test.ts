import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { processIo } from '../../../../cli/world.ts';
import { audited, newFolder } from '../register.ts';
import { now, run } from '../run.ts';

const id = `aws#i-${'a'.repeat(17)}`;
const world = { userName: () => 'ada' };
/** The name of a TPM. */
const tpm = (digit: string): string => `tpm#${digit.repeat(64)}`;

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
    ['MACHINE', 'NODE', 'SINCE', 'BY', 'REASON'],
    ['aws#i-0*', '-', '2026-06-01T12:00:00Z', 'ada', 'the batch of May'],
    [id, '-', '2026-06-01T12:00:00Z', 'ada', 'rack 8'],
    [''],
  ]);
  const removed = await machines('remove', 'aws#i-0*', '--reason', 'all there');
  expect([removed.code, removed.out]).toEqual([0, expect.stringMatching(/^removed: aws#i-0\* /)]);
  expect(JSON.parse((await machines('list', '-o', 'json')).out)).toEqual([
    { name: id, addresses: [], dnsNames: [], addedAt: '2026-06-01T12:00:00Z', by: 'ada', reason: 'rack 8' },
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

describe('a machine with a TPM', () => {
  test('is listed with its names, in canonical form and each once', async () => {
    const folder = await newFolder();
    const machines = (...argv: readonly string[]) => run(['machines', ...argv, '--data', folder.path], { world });
    const named = ['--node', 'worker-3', '--address', '10.0.7.3', '--address', 'FD00:0007:0::3'];
    const more = ['--address', 'fd00:7::3', '--dns', 'Worker-3.Example.com', '--dns', 'worker-3.example.com'];
    const ran = await machines('allow', tpm('a'), ...named, ...more, '--reason', 'rack 7');
    expect([ran.code, ran.out]).toEqual([
      0,
      expect.stringMatching(/^allowed: tpm#a{64} \(audit item \w{26}, by ada\)\n$/),
    ]);
    const entry = {
      name: tpm('a'),
      nodeName: 'worker-3',
      addresses: ['10.0.7.3', 'fd00:7::3'],
      dnsNames: ['worker-3.example.com'],
    };
    expect(await folder.store.findMachine(tpm('a'))).toEqual({ ...entry, addedAt: now, by: 'ada', reason: 'rack 7' });
    expect(await audited(folder)).toMatchObject([{ action: 'allow', subject: tpm('a'), nodeName: 'worker-3' }]);

    expect((await machines('list')).out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['MACHINE', 'NODE', 'SINCE', 'BY', 'REASON'],
      [tpm('a'), 'worker-3', '2026-06-01T12:00:00Z', 'ada', 'rack 7'],
      [''],
    ]);
    const wide = (await machines('list', '-o', 'wide')).out.split('\n').map((line) => line.split(/ {2,}/));
    expect(wide.slice(0, 2)).toEqual([
      ['MACHINE', 'NODE', 'ADDRESSES', 'DNS NAMES', 'SINCE', 'BY', 'REASON'],
      [tpm('a'), 'worker-3', '10.0.7.3, fd00:7::3', 'worker-3.example.com', '2026-06-01T12:00:00Z', 'ada', 'rack 7'],
    ]);
    // Without flags the names are those that the configuration permits: the entry is replaced as a whole.
    await machines('allow', tpm('a'), '--reason', 'rack 8');
    expect(await folder.store.findMachine(tpm('a'))).toEqual({
      name: tpm('a'),
      addresses: [],
      dnsNames: [],
      addedAt: now,
      by: 'ada',
      reason: 'rack 8',
    });
  });

  test('is shown with all changes of its entry, also when it is no longer listed', async () => {
    const folder = await newFolder();
    const machines = (...argv: readonly string[]) => run(['machines', ...argv, '--data', folder.path], { world });
    expect(await machines('show', tpm('a'))).toMatchObject({ code: 4, out: '' });
    await machines('allow', tpm('a'), '--node', 'worker-3', '--reason', 'rack 7');
    await machines('allow', tpm('b'), '--reason', 'another');
    const shown = await machines('show', tpm('a'));
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(/^machine +tpm#a{64}\nnode +worker-3\naddresses +-\ndns names +-\nsince +2026/);
    expect(shown.out).toMatch(/\n\nWHEN +ACTION .*\n.* allow +tpm#a{64} +worker-3 +ada +rack 7\n$/);
    expect((await machines('show', tpm('b'))).out).toContain('node       as the configuration permits\n');
    await machines('remove', tpm('a'), '--reason', 'board broken');
    const gone = await machines('show', tpm('a'), '-o', 'json');
    expect([gone.code, gone.err]).toEqual([4, expect.stringContaining('is not on the list any more')]);
    const { entry, history } = JSON.parse(gone.out) as { entry?: object; history: { action: string }[] };
    expect([entry, history.map(({ action }) => action).toSorted()]).toEqual([undefined, ['allow', 'remove']]);
  });

  // Versions before allowed every name.
  test('whose entry is a pattern can be removed', async () => {
    const folder = await newFolder();
    const entry = { name: 'tpm#*', addresses: [], dnsNames: [], addedAt: now, by: 'eve', reason: 'x' };
    const audit = {
      id: '0'.repeat(26),
      at: now,
      by: 'eve',
      action: 'allow',
      subject: entry.name,
      reason: 'x',
    } as const;
    await folder.register.allowMachine(entry, audit);
    expect((await run(['machines', 'remove', 'tpm#*', '--reason', 'x', '--data', folder.path])).code).toBe(0);
    expect(await folder.register.listMachines()).toEqual([]);
  });
});

describe('--from', () => {
  const why = ['--reason', 'the inventory of May'];
  const listing = `# rack 7
${tpm('a')} node=worker-1 address=10.0.7.1 address=fd00:7:0::1 dns=Worker-1.example.com # the left one

${tpm('b')}\tdns=b.example.com  node=worker-2\r
  ${id}
`;
  const allow = async (path: string, text: string, more: object = {}) =>
    run(['machines', 'allow', '--from', '-', ...why, '--data', path], {
      files: { '-': text },
      world: { ...world, ...more },
    });

  test('lists every machine of a file, one audit item each; the same file again changes nothing', async () => {
    const folder = await newFolder();
    const ran = await allow(folder.path, listing);
    expect([ran.code, ran.out]).toEqual([0, 'allowed: 3 of 3 machines, 0 unchanged (by ada)\n']);
    const about = { addedAt: now, by: 'ada', reason: 'the inventory of May' };
    expect(await folder.register.listMachines()).toEqual([
      { name: id, addresses: [], dnsNames: [], ...about },
      {
        name: tpm('a'),
        nodeName: 'worker-1',
        addresses: ['10.0.7.1', 'fd00:7::1'],
        dnsNames: ['worker-1.example.com'],
        ...about,
      },
      { name: tpm('b'), nodeName: 'worker-2', addresses: [], dnsNames: ['b.example.com'], ...about },
    ]);
    expect(await audited(folder)).toHaveLength(3);
    const again = await allow(folder.path, listing);
    expect([again.code, again.out]).toEqual([0, 'allowed: 0 of 3 machines, 3 unchanged (by ada)\n']);
    expect(await audited(folder)).toHaveLength(3);
    // A name more, a name less.
    const changed = await allow(folder.path, `${tpm('a')} node=worker-1\n${tpm('b')} dns=b.example.com\n${id}\n`);
    expect(changed.out).toBe('allowed: 2 of 3 machines, 1 unchanged (by ada)\n');
    expect(await folder.store.findMachine(tpm('b'))).toEqual({
      name: tpm('b'),
      addresses: [],
      dnsNames: ['b.example.com'],
      ...about,
    });
  });

  test('names every wrong line, and writes nothing', async () => {
    const folder = await newFolder();
    const wrong: readonly (readonly [line: string, problem: string])[] = [
      [`${tpm('a')} node=worker-1`, ''],
      [tpm('A'), '2: The name of a TPM is tpm# and 64 lower-case hexadecimal digits'],
      ['tpm#*', '3: A file has exact names only'],
      [`${tpm('b')} host=b`, '4: "host=b" is not node=, address= or dns='],
      [`${tpm('c')} worker-3`, '5: "worker-3" is not node=, address= or dns='],
      [`${tpm('d')} node=a node=b`, '6: A machine has one node name.'],
      [`${tpm('e')} address=10.0.0.256`, '7: "10.0.0.256" is not an IP address'],
      [tpm('a'), `8: line 1 has ${tpm('a')} already`],
      [`${tpm('f')} node=worker-1`, '9: line 1 has node=worker-1 already'],
      [`${id} node=worker-9`, '10: EC2 vouches for'],
      ['# the end', ''],
    ];
    const ran = await allow(folder.path, wrong.map(([line]) => line).join('\n'));
    expect([ran.code, ran.out]).toEqual([3, '']);
    const told = ran.err.trimEnd().split('\n');
    const expected = wrong.flatMap(([, problem]) => (problem === '' ? [] : [problem]));
    expect(told).toHaveLength(expected.length);
    for (const [index, problem] of expected.entries()) expect(told[index]).toContain(`-:${problem}`);
    expect(await folder.register.listMachines()).toEqual([]);
    expect((await allow(folder.path, '# nothing\n')).err).toContain('-:1: the file names no machine');
    const file = join(folder.path, 'absent.txt');
    expect((await run(['machines', 'allow', '--from', file, ...why, '--data', folder.path])).code).toBe(4);
  });

  test('tells how far it came when the store fails, and goes on from there', async () => {
    const folder = await newFolder();
    const text = Array.from({ length: 250 }, (_, i) => `tpm#${String(i).padStart(64, '0')}\n`).join('');
    let left = 230;
    const openRegister: ReturnType<typeof processIo>['openRegister'] = async (place) => {
      const open = await processIo().openRegister(place);
      const allowMachine: typeof open.register.allowMachine = async (...given) => {
        left -= 1;
        if (left < 0) throw new Error('disk full');
        return open.register.allowMachine(...given);
      };
      return { ...open, register: { ...open.register, allowMachine } };
    };
    const ran = await allow(folder.path, text, { openRegister });
    expect(ran).toMatchObject({ code: 5, out: '' });
    expect(ran.err).toMatch(
      /countersign: 100 of 250 machines\ncountersign: 200 of 250 machines\n.*-:231: it ended here, after 230 of 250 machines; run it again\ncountersign: .*disk full\n$/,
    );
    expect(await folder.register.listMachines()).toHaveLength(230);
    expect((await allow(folder.path, text)).out).toBe('allowed: 20 of 250 machines, 230 unchanged (by ada)\n');
  });

  test.each<readonly [string, readonly string[], RegExp]>([
    ['with an entry', [id, '--from', '-'], /not both/],
    ['nor an entry', [], /which machine\?/],
    ['with a name', ['--from', '-', '--node', 'worker-3'], /each line of the file has the names/],
    ['with an address', ['--from', '-', '--address', '10.0.0.1'], /each line of the file has the names/],
    ['with a DNS name', ['--from', '-', '--dns', 'a.b'], /each line of the file has the names/],
  ])('%s is a usage error', async (_, argv, message) => {
    const folder = await newFolder();
    const ran = await run(['machines', 'allow', ...argv, ...why, '--data', folder.path], { files: { '-': id } });
    expect([ran.code, ran.err]).toEqual([2, expect.stringMatching(message)]);
    expect(await folder.register.listMachines()).toEqual([]);
  });
});

test.each<readonly [string, readonly string[], RegExp]>([
  ['no reason', [id], /--reason/],
  ['no provider', [`i-${'a'.repeat(17)}`, '--reason', 'x'], /begins with its provider: aws#i-a/],
  ['an invalid id', ['aws#i-12', '--reason', 'x'], /hexadecimal/],
  ['blanks', ['aws#i- *', '--reason', 'x'], /looks like/],
  ['no name at all', ['aws#', '--reason', 'x'], /looks like/],
  ['a hash without its provider', ['A'.repeat(64), '--reason', 'x'], /begins with its provider: tpm#a{64}/],
  ['a short hash of a TPM', ['tpm#12', '--reason', 'x'], /64 lower-case hexadecimal digits/],
  ['a pattern of TPMs', ['tpm#a*', '--reason', 'x'], /an entry is trust in one endorsement key/],
  ['names for an EC2 instance', [id, '--node', 'worker-3', '--reason', 'x'], /EC2 vouches for/],
  ['an address for an EC2 instance', [id, '--address', '10.0.0.1', '--reason', 'x'], /EC2 vouches for/],
  ['names for a pattern', ['aws#*', '--dns', 'a.b', '--reason', 'x'], /EC2 vouches for/],
  ['names for another provider', ['x509#a', '--dns', 'a.b', '--reason', 'x'], /x509 does not take the names/],
  ['two node names', [tpm('a'), '--node', 'a', '--node', 'b', '--reason', 'x'], /one node name/],
  [
    'a node name that no node has',
    [tpm('a'), '--node', 'Worker_3', '--reason', 'x'],
    /"Worker_3" is not the name of a node/,
  ],
  ['an invalid address', [tpm('a'), '--address', '10.0.07.1', '--reason', 'x'], /"10.0.07.1" is not an IP address/],
  ['a range', [tpm('a'), '--address', '10.0.0.0/24', '--reason', 'x'], /is not an IP address/],
  ['a wildcard', [tpm('a'), '--dns', '*.example.com', '--reason', 'x'], /"\*.example.com" is a wildcard/],
  ['an invalid DNS name', [tpm('a'), '--dns', 'a..b', '--reason', 'x'], /"a..b" is not a host name/],
  ['an address as a DNS name', [tpm('a'), '--dns', '10.0.0.1', '--reason', 'x'], /reads as an address/],
  [
    'more addresses than a machine has',
    [tpm('a'), ...Array.from({ length: 41 }, (_, i) => ['--address', `10.0.0.${i}`]).flat(), '--reason', 'x'],
    /at most 40 addresses/,
  ],
])('%s is a usage error', async (_, argv, message) => {
  const folder = await newFolder();
  const ran = await run(['machines', 'allow', ...argv, '--data', folder.path]);
  expect(ran.code).toBe(2);
  expect(ran.err).toMatch(message);
  expect(await folder.register.listMachines()).toEqual([]);
});
