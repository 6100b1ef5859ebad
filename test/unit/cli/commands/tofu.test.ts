import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir, userInfo } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { processIo } from '../../../../cli/world.ts';
import type { OpenRegister } from '../../../../cli/runtime/io.ts';
import { audited, hour, machine, newFolder, recordOf, used } from '../register.ts';
import type { Folder } from '../register.ts';
import { now, run } from '../run.ts';

async function folderWith(...records: readonly ReturnType<typeof recordOf>[]): Promise<Folder> {
  const folder = await newFolder();
  for (const record of records) await used(folder, record);
  return folder;
}

/** The real store, and before each change of it something that another does. */
function disturbed(disturb: (open: OpenRegister) => Promise<unknown>) {
  return {
    async openRegister(place: Parameters<ReturnType<typeof processIo>['openRegister']>[0]): Promise<OpenRegister> {
      const open = await processIo().openRegister(place);
      return {
        ...open,
        register: {
          ...open.register,
          reset: async (record, audit) => {
            await disturb(open);
            return open.register.reset(record, audit);
          },
        },
      };
    },
  };
}

const why = ['--reason', 'ticket 4711'];

describe('list', () => {
  test('machines by node name; wide adds provider id and key', async () => {
    const { path } = await folderWith(recordOf('worker-2', 'b', { uses: 7, renewals: 2 }), recordOf('worker-1', 'a'));
    const ran = await run(['tofu', 'list', '--data', path]);
    expect([ran.code, ran.err]).toEqual([0, '']);
    expect(ran.out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['NODE', 'IDENTITY', 'STATE', 'SINCE', 'LAST SEEN', 'USES', 'RENEWALS'],
      ['worker-1', machine('a'), 'active', '2026-06-01T10:00:00Z', '2026-06-01T11:00:00Z', '1', '0'],
      ['worker-2', machine('b'), 'active', '2026-06-01T10:00:00Z', '2026-06-01T11:00:00Z', '7', '2'],
      [''],
    ]);
    const wide = await run(['tofu', 'list', '--data', path, '-o', 'wide']);
    expect(wide.out).toMatch(/ PROVIDER ID +KEY +ATTESTATION KEY +RESETS\n/);
    expect(wide.out).toContain(`aws:///eu-central-1a/i-${'a'.repeat(17)}  ${'a'.repeat(64)}  -                -\n`);
    const json = JSON.parse((await run(['tofu', 'list', '--data', path, '-o', 'json'])).out) as object[];
    expect(json[1]).toEqual({
      node: 'worker-2',
      identity: machine('b'),
      state: 'active',
      since: '2026-06-01T10:00:00Z',
      lastSeen: '2026-06-01T11:00:00Z',
      startedAt: '2026-06-01T09:00:00Z',
      uses: 7,
      renewals: 2,
      providerId: `aws:///eu-central-1a/i-${'b'.repeat(17)}`,
      keySha256: 'b'.repeat(64),
      previousKeysSha256: [],
      addresses: [],
      lastUid: 'uid-b',
      rev: 1,
    });
    expect((await run(['tofu', 'list', '--data', path, '-o', 'yaml'])).out).toContain('- node: worker-1\n');
  });

  test('a machine with a TPM has its attestation key and the clock of the TPM', async () => {
    const akName = `000b${'c'.repeat(64)}`;
    const tpm = { identity: `tpm#${'d'.repeat(64)}`, providerId: `tpm:///${'d'.repeat(64)}` };
    const folder = await folderWith(
      recordOf('worker-1', 'a', { ...tpm, device: { akName, resetCount: 3, clock: 86_400_999 } }),
    );
    const ask = async (...argv: readonly string[]) => (await run(['tofu', ...argv, '--data', folder.path])).out;
    expect(await ask('list')).not.toContain(akName);
    expect(await ask('list', '-o', 'wide')).toMatch(new RegExp(` ${'a'.repeat(64)}  ${akName}  3\\n$`));
    expect(await ask('show', '--node', 'worker-1')).toMatch(
      new RegExp(`\nattestation key +${akName}\nTPM +3 resets, 86400 s with power\n`),
    );
    const json = JSON.parse(await ask('list', '-o', 'json')) as readonly object[];
    expect(json[0]).toMatchObject({ attestationKey: akName, resetCount: 3, clockMilliseconds: 86_400_999 });
    const reset = await run(['tofu', 'reset', '--identity', tpm.identity, ...why, '--data', folder.path]);
    expect([reset.code, reset.out]).toEqual([0, expect.stringContaining(`reset: node worker-1, ${tpm.identity} `)]);
    // The audit item keeps what the TPM reported: a reset ends the protection against an older state.
    expect((await audited(folder))[0]?.before?.device).toEqual({ akName, resetCount: 3, clock: 86_400_999 });
  });

  test('by state', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'), recordOf('worker-2', 'b'));
    await used(folder, recordOf('worker-2', 'c'), recordOf('worker-2', 'b'));
    const list = async (state: string) => (await run(['tofu', 'list', '--data', folder.path, '--state', state])).out;
    expect(await list('retired')).toMatch(new RegExp(`^NODE.*\\nworker-2 +${machine('b')} .*\\n$`));
    expect(await list('active')).toMatch(new RegExp(`^NODE.*\\nworker-1 .*\\nworker-2 +${machine('c')} .*\\n$`));
    expect((await run(['tofu', 'list', '--data', folder.path, '--state', 'revoked'])).code).toBe(2);
  });

  test('of a machine that was terminated: when it was retired, and when its name is free', async () => {
    const record = recordOf('worker-1', 'a');
    const folder = await folderWith(record);
    const audit = {
      id: '0'.repeat(26),
      at: now,
      by: 'attest',
      action: 'retire',
      subject: machine('a'),
      reason: 'gone',
    } as const;
    await folder.store.retire(record, { nameFreeAt: now + 3_600_000, audit });
    const [retiredAt, nameFreeAt] = [now, now + 3_600_000].map((at) =>
      new Date(at).toISOString().replace('.000Z', 'Z'),
    );
    const where = ['--data', folder.path];
    const json = JSON.parse((await run(['tofu', 'list', ...where, '-o', 'json'])).out) as object[];
    expect(json).toMatchObject([{ state: 'retired', retiredAt, nameFreeAt }]);
    const { out } = await run(['tofu', 'show', '--node', 'worker-1', ...where]);
    expect(out).toContain(`retired         ${retiredAt}`);
    expect(out).toContain(`name free from  ${nameFreeAt}`);
  });

  test('a name is escaped for the terminal', async () => {
    const { path } = await folderWith(recordOf('\u001b[31mx\n', 'a'));
    const { out } = await run(['tofu', 'list', '--data', path]);
    expect(out).toContain('\\u{1b}[31mx\\u{a}');
    expect(out.split('\n')).toHaveLength(3);
  });
});

describe('reset', () => {
  test('only the audit item is left: author, reason and the former record', async () => {
    const record = recordOf('worker-1', 'a');
    const folder = await folderWith(record);
    const ran = await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', ...why]);
    expect([ran.code, ran.err]).toEqual([0, `countersign: folder ${folder.path}, as ${userInfo().username}\n`]);
    expect(ran.out).toMatch(/^reset: node worker-1, aws#.* \(audit item [0-9A-Z]{26}, by .+\)\n$/);
    expect(await folder.store.findNode('worker-1')).toBeUndefined();
    expect(await folder.store.findIdentity(machine('a'))).toBeUndefined();
    expect(await audited(folder)).toEqual([
      {
        id: expect.stringMatching(/^[0-9A-Z]{26}$/) as unknown,
        at: now,
        by: userInfo().username,
        action: 'reset',
        subject: machine('a'),
        nodeName: 'worker-1',
        reason: 'ticket 4711',
        before: record,
      },
    ]);
    const again = await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', ...why]);
    expect([again.code, again.err]).toEqual([4, expect.stringContaining('no machine has the node name worker-1')]);
  });

  test('of a machine that is retired: its successor keeps the name', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    await used(folder, recordOf('worker-1', 'b'), recordOf('worker-1', 'a'));
    const ran = await run(['tofu', 'reset', '--data', folder.path, '--identity', machine('a'), ...why, '-o', 'json']);
    expect(JSON.parse(ran.out)).toMatchObject({ action: 'reset', before: { state: 'retired', node: 'worker-1' } });
    expect((await folder.store.findNode('worker-1'))?.identity).toBe(machine('b'));
    const again = await run(['tofu', 'reset', '--data', folder.path, '--identity', machine('a'), ...why]);
    expect([again.code, again.err]).toEqual([4, expect.stringContaining('is not on record')]);
  });

  test.each<readonly [string, readonly string[]]>([
    ['no reason', ['--node', 'worker-1']],
    ['an empty reason', ['--node', 'worker-1', '--reason', ' ']],
    ['a reason of two lines', ['--node', 'worker-1', '--reason', 'a\nb']],
    ['a reason without end', ['--node', 'worker-1', '--reason', 'x'.repeat(501)]],
    ['no machine', why],
    ['two machines', ['--node', 'worker-1', '--identity', machine('a'), ...why]],
  ])('%s is a usage error, and nothing happens', async (_, argv) => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    expect((await run(['tofu', 'reset', '--data', folder.path, ...argv])).code).toBe(2);
    expect(await folder.store.findNode('worker-1')).toMatchObject({ rev: 1 });
    expect(await audited(folder)).toEqual([]);
  });

  test('a record that changed meanwhile is read once more', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    let times = 0;
    const world = disturbed(async ({ store }) => {
      times += 1;
      const record = await store.findNode('worker-1');
      if (times === 1 && record !== undefined) await renew(folder, record);
    });
    const ran = await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', ...why], { world });
    expect([ran.code, times]).toEqual([0, 2]);
    const [item, ...others] = await audited(folder);
    // What was reset is what stood there at the end.
    expect([item?.before?.rev, others]).toEqual([2, []]);
  });

  test('only once more: then it is a conflict, and nothing is changed', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    const world = disturbed(async ({ store }) => {
      const record = await store.findNode('worker-1');
      if (record !== undefined) await renew(folder, record);
    });
    const ran = await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', ...why], { world });
    expect([ran.code, ran.err]).toEqual([
      6,
      expect.stringContaining('was changed by another command at the same time'),
    ]);
    expect(await folder.store.findNode('worker-1')).toMatchObject({ state: 'active', rev: 3 });
    expect(await audited(folder)).toEqual([]);
  });
});

async function renew({ store }: Folder, record: ReturnType<typeof recordOf>): Promise<void> {
  const verdict = {
    uid: `renewal-${record.rev}`,
    requestDigest: 'cd'.repeat(32),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    decision: 'approve',
    annotations: {},
    identity: record.identity,
    nodeName: record.nodeName,
    mode: 'enforce',
    decidedAt: now,
    expiresAt: now + 25 * hour,
  } as const;
  const next = { ...record, rev: record.rev + 1, uses: record.uses + 1 };
  const write = await store.claim(
    { verdict, once: [], identity: { kind: 'replace', record: next }, newAddresses: [], audit: [] },
    now,
  );
  if (write.kind !== 'written') throw new Error('the renewal was not written');
}

describe('show', () => {
  test('the record, and what was done to it and to its name', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', '--reason', 'reinstalled']);
    await used(folder, recordOf('worker-1', 'b'));
    const ran = await run(['tofu', 'show', '--data', folder.path, '--node', 'worker-1']);
    expect([ran.code, ran.err]).toEqual([0, '']);
    expect(ran.out).toContain(`identity      ${machine('b')}\n`);
    expect(ran.out).toMatch(
      new RegExp(`\\n\\nWHEN .*\\n2026-06-01T12:00:00Z {2}reset +${machine('a')} .* reinstalled\\n$`),
    );
    const json: unknown = JSON.parse(
      (await run(['tofu', 'show', '--data', folder.path, '--node', 'worker-1', '-o', 'json'])).out,
    );
    expect(json).toMatchObject({
      record: { identity: machine('b') },
      history: [{ action: 'reset', at: '2026-06-01T12:00:00Z', before: { identity: machine('a') } }],
    });
    // The other machine's own page has nothing of it.
    const other = await run(['tofu', 'show', '--data', folder.path, '--identity', machine('b'), '-o', 'json']);
    expect(JSON.parse(other.out)).toMatchObject({ history: [] });
  });

  test('of a machine without a record: its history, and exit code 4', async () => {
    const folder = await folderWith(recordOf('worker-1', 'a'));
    await run(['tofu', 'reset', '--data', folder.path, '--node', 'worker-1', ...why]);
    for (const argv of [
      ['--node', 'worker-1'],
      ['--identity', machine('a')],
    ]) {
      const ran = await run(['tofu', 'show', '--data', folder.path, ...argv]);
      expect(ran.code).toBe(4);
      expect(ran.out).toMatch(/^WHEN .*\n.* reset .* ticket 4711\n$/);
    }
    const never = await run(['tofu', 'show', '--data', folder.path, '--node', 'worker-9']);
    expect([never.code, never.out, never.err]).toEqual([4, '', expect.stringContaining('worker-9')]);
  });
});

describe('where', () => {
  test.each<readonly [string, readonly string[], number, RegExp]>([
    ['nowhere', [], 2, /which cluster\?/],
    ['a folder without a store', ['--data', '/nonexistent'], 4, /there is no \/nonexistent\/attestations.sqlite/],
    [
      'a folder and a table',
      ['--data', '/nonexistent', '--table', 't'],
      2,
      /--data <dir>' cannot be used with option '--table/,
    ],
    [
      'a folder and a region',
      ['--data', '/nonexistent', '--region', 'r'],
      2,
      /--data <dir>' cannot be used with option '--region/,
    ],
  ])('%s', async (_, argv, code, message) => {
    const ran = await run(['tofu', 'list', ...argv]);
    expect([ran.code, ran.out]).toEqual([code, '']);
    expect(ran.err).toMatch(message);
  });

  test('a file of another program', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-cli-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'attestations.sqlite'), 'something else altogether');
    const ran = await run(['tofu', 'list', '--data', folder]);
    expect([ran.code, ran.err]).toEqual([3, expect.stringMatching(/not a database/)]);
  });
});
