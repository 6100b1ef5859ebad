/** `countersign cert` over the embedded ledger: the same reads as over DynamoDB (test/contract/certificate-reads.ts). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { newKey } from '../../../harness/x509/requests.ts';
import { run } from '../run.ts';
import { day, ledgerFolder } from './ledger.ts';

/** The test's CA is valid now. */
const now = Math.floor(Date.now() / 1_000) * 1_000;
const world = { now: () => now };
const json = (out: string) => JSON.parse(out) as { certificates: Record<string, unknown>[]; next?: string };
const uidsOf = (out: string) => json(out).certificates.map(({ uid }) => uid);

const user = (name: string) => ({
  request: { key: newKey('P-256'), subject: { CN: name, O: 'team' } },
  spec: { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], username: `${name}-login` },
});

async function three() {
  const made = await ledgerFolder();
  const node = await made.issued(now - 25 * day, { identity: 'aws#i-1' });
  const alice = await made.issued(now - 10 * day, user('alice'));
  const bob = await made.issued(now, user('bob'));
  const cert = (...argv: readonly string[]) => run(['cert', ...argv], { world });
  return { ...made, node, alice, bob, cert, data: ['--data', made.folder] as const };
}

describe('cert list', () => {
  test('the earliest end first; expiry views are ranges of it', async () => {
    const { cert, data, node, alice, bob } = await three();
    const uids = async (...flags: readonly string[]) =>
      uidsOf((await cert('list', ...data, '-o', 'json', ...flags)).out);
    const date = (instant: number) => new Date(instant).toISOString();
    expect(await uids()).toEqual([node.uid, alice.uid, bob.uid]);
    expect(await uids('--expiring', '6d')).toEqual([node.uid]);
    expect(await uids('--expiring', '504h')).toEqual([node.uid, alice.uid]);
    expect(await uids('--from', date(alice.notAfter), '--to', date(bob.notAfter))).toEqual([alice.uid]);
    expect(await uids('--from', '2020-01-01', '--to', date(now))).toEqual([]);
    expect((await cert('list', ...data, '--from', '2020-01-01', '--to', '2020-01-02')).code).toBe(0);
  });

  test('as a table, wide, and as YAML: who asked, of which signer, for which machine', async () => {
    const { cert, data, node, alice } = await three();
    const { out } = await cert('list', ...data);
    const [head, first, second] = out.split('\n');
    expect(head).toMatch(/^SERIAL +SUBJECT +SIGNER +REQUESTER +VERDICT +EXPIRES$/);
    expect(first).toContain(node.serial);
    expect(first).toMatch(
      /O=system:nodes, CN=system:node:n1 +kubernetes.io\/kube-apiserver-client-kubelet +system:bootstrap:abcdef +approve /,
    );
    expect(second).toMatch(/O=team, CN=alice +kubernetes.io\/kube-apiserver-client +alice-login +- /);
    const wide = (await cert('list', ...data, '-o', 'wide')).out;
    expect(wide).toContain('aws#i-1');
    expect(wide).toContain(alice.uid);
    const yaml = parse((await cert('list', ...data, '-o', 'yaml')).out) as { certificates: object[] };
    expect(yaml.certificates[1]).toMatchObject({
      requester: 'alice-login',
      notAfter: new Date(alice.notAfter).toISOString(),
    });
  });

  test('page by page: --limit says where the next page begins', async () => {
    const { cert, data, node, alice, bob } = await three();
    const first = await cert('list', ...data, '-o', 'json', '--limit', '2');
    expect(json(first.out).next).toBe(alice.uid);
    expect(uidsOf(first.out)).toEqual([node.uid, alice.uid]);
    expect(first.err).toBe(`countersign: there are more: --after ${alice.uid}\n`);
    const second = await cert('list', ...data, '-o', 'json', '--limit', '2', '--after', alice.uid);
    expect(json(second.out)).not.toHaveProperty('next');
    expect(uidsOf(second.out)).toEqual([bob.uid]);
    expect(await cert('list', ...data, '--after', 'no-such-uid')).toMatchObject({ code: 4 });
  });

  test('intents are shown on request only', async () => {
    const { cert, data, ledger, node } = await three();
    const { certificate: _, state: __, kmsRequestId: ___, ...intent } = node;
    await ledger.open({ ...intent, uid: 'left-behind', serial: 'ab' });
    expect(uidsOf((await cert('list', ...data, '-o', 'json')).out)).not.toContain('left-behind');
    expect(uidsOf((await cert('list', ...data, '-o', 'json', '--state', 'intent')).out)).toEqual(['left-behind']);
    expect(uidsOf((await cert('list', ...data, '-o', 'json', '--state', 'any')).out)).toHaveLength(4);
  });

  test.each([
    [['--expiring', '30'], 'It must look like 30d'],
    [['--expiring', '0d'], 'It must look like 30d'],
    [['--from', '2026-05-01T10:00'], 'It must look like 2026-05-01'],
    [['--from', '2026-02-31T00:00:00Z', '--to', '2026-01-01'], '--to must be after --from'],
    [['--expiring', '3d', '--from', '2026-05-01'], 'cannot be used with'],
    [['--limit', '10001'], 'It must be 1 to 10000'],
    [['--limit', '0'], 'It must be 1 to 10000'],
  ])('%s is a mistake of the command line', async (flags, says) => {
    const { code, err } = await run(['cert', 'list', '--data', '/nonexistent', ...flags], { world });
    expect([code, err]).toEqual([2, expect.stringContaining(says)]);
  });
});

describe('cert find', () => {
  test('by each fact, and by several at once', async () => {
    const { cert, data, node, alice, bob } = await three();
    const shown = json((await cert('list', ...data, '-o', 'json')).out).certificates;
    const fact = (uid: string, name: string) => String(shown.find((entry) => entry['uid'] === uid)?.[name]);
    for (const [flags, expected] of [
      [['--node', 'n1'], [node]],
      [['--identity', 'aws#i-1'], [node]],
      [['--name', 'alice'], [alice]],
      [
        ['--organization', 'team'],
        [alice, bob],
      ],
      [
        ['--signer', 'kubernetes.io/kube-apiserver-client'],
        [alice, bob],
      ],
      [['--requester', 'bob-login'], [bob]],
      [['--key', fact(alice.uid, 'publicKeySha256')], [alice]],
      [['--fingerprint', fact(bob.uid, 'fingerprintSha256').toUpperCase()], [bob]],
      [['--organization', 'team', '--requester', 'bob-login'], [bob]],
    ] as const) {
      const { code, out } = await cert('find', ...data, ...flags, '-o', 'json');
      expect([code, uidsOf(out)], flags.join(' ')).toEqual([0, expected.map(({ uid }) => uid)]);
    }
    expect(await cert('find', ...data, '--requester', 'bob')).toMatchObject({ code: 4 });
    expect(await cert('find', ...data)).toMatchObject({ code: 2 });
  });

  test('in an export the same, without the cluster', async () => {
    const { cert, data, folder, alice, bob } = await three();
    const file = join(folder, 'export.jsonl');
    writeFileSync(file, (await cert('export', ...data)).out);
    const find = async (...flags: readonly string[]) =>
      uidsOf((await cert('find', '--export', file, '--organization', 'team', '-o', 'json', ...flags)).out);
    expect(await find()).toEqual([alice.uid, bob.uid]);
    expect(await find('--after', alice.uid)).toEqual([bob.uid]);
    expect(await find('--limit', '1')).toEqual([alice.uid]);
    expect(await find('--expiring', '21d')).toEqual([alice.uid]);
  });
});

describe('cert show', () => {
  test('by its serial number as any program prints it, and by its UID', async () => {
    const { cert, data, node } = await three();
    const colons = node.serial.toUpperCase().replaceAll(/(..)(?=.)/g, '$1:');
    const outs = [];
    for (const wanted of [node.serial, `00:${colons}`, node.uid])
      outs.push((await cert('show', wanted, ...data, '-o', 'json')).out);
    expect(new Set(outs).size).toBe(1);
    expect(JSON.parse(outs[0] ?? '')).toMatchObject({
      uid: node.uid,
      serial: node.serial,
      requester: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
      identity: 'aws#i-1',
    });
    const { out } = await cert('show', node.serial, ...data);
    expect(out).toMatch(/machine +aws#i-1\n/);
    expect(out).toMatch(/KMS request +kms-1\n/);
    for (const none of ['abcd', 'no-such-uid'])
      expect(await cert('show', none, ...data)).toMatchObject({
        code: 4,
        err: expect.stringContaining(none) as string,
      });
  });

  test('names of a certificate steer no terminal', async () => {
    const made = await ledgerFolder();
    const record = await made.issued(now, { spec: { username: 'ali\u200bce' } });
    const { out } = await run(['cert', 'show', record.uid, '--data', made.folder], { world });
    expect(out).toContain('ali\\u{200b}ce');
  });
});

describe('cert export', () => {
  test('each record in a line with its certificate, and a last line by which a cut file is known', async () => {
    const { cert, data, node } = await three();
    const { code, out, err } = await cert('export', ...data);
    expect(code).toBe(0);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(4);
    expect(Buffer.from(String(lines[0]?.['certificate']), 'base64')).toEqual(Buffer.from(node.certificate ?? []));
    expect(lines[3]).toEqual({
      end: {
        records: 3,
        signatures: 0,
        from: new Date(now).toISOString(),
        to: new Date(now + 366 * day).toISOString(),
      },
    });
    expect(err).toContain('3 records that expire from');
    const find = (text: string) =>
      run(['cert', 'find', '--export', 'e', '--name', 'alice', '-o', 'json'], { world, files: { e: text } });
    const cut = out.split('\n').slice(0, 3).join('\n');
    expect(await find(cut)).toMatchObject({
      code: 3,
      err: expect.stringContaining('its last line is missing') as string,
    });
    const oneLess = out.split('\n').slice(1).join('\n');
    expect(await find(oneLess)).toMatchObject({
      code: 3,
      err: expect.stringContaining('it has 2 of 3 records') as string,
    });
    expect(await find(`${out}{}\n`)).toMatchObject({ code: 3, err: expect.stringContaining('e:5') as string });
    expect(await find(out.replace('"state":"issued"', '"state":"intent"'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('e:1: exactly an issued record has a certificate') as string,
    });
    expect(await find('no JSON\n')).toMatchObject({
      code: 3,
      err: expect.stringContaining('e:1: it is no JSON') as string,
    });
  });
});
