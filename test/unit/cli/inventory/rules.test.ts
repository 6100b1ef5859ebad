/** `countersign config test` and `config diff`: decisions by rules that are not in force yet. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { run } from '../run.ts';
import { ledgerFolder } from './ledger.ts';

const now = Math.floor(Date.now() / 1_000) * 1_000;
const hour = 3_600_000;
const serving = 'kubernetes.io/kubelet-serving';
const client = 'kubernetes.io/kube-apiserver-client';
const kubelet = 'kubernetes.io/kube-apiserver-client-kubelet';

type Profiles = Readonly<Record<string, object>>;
const all: Profiles = Object.fromEntries([serving, client, kubelet].map((name) => [name, { ca: 'ca', maxTtl: '30d' }]));
const yaml = (profiles: Profiles, more: object = {}) =>
  JSON.stringify({
    version: 1,
    clusters: {
      prod: {
        cas: { ca: { subject: { commonName: 'ca' } }, web: { subject: { commonName: 'web' } } },
        profiles,
        ...more,
      },
    },
  });

describe('config test', () => {
  const { pem } = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:n1' }, sans: { dns: ['n1'] } });
  const request = (change: object = {}) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    spec: {
      request: pem,
      signerName: serving,
      usages: ['digital signature', 'server auth'],
      username: 'system:node:n1',
      groups: ['system:nodes'],
      ...change,
    },
  });

  function folderOf(files: Readonly<Record<string, unknown>>): string {
    const { path, remove } = temporaryFolder('cases');
    onTestFinished(remove);
    mkdirSync(join(path, 'nodes'));
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(path, name), typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }
  const tried = (folder: string, ...flags: readonly string[]) =>
    run(['config', 'test', folder, '--config', 'c.yaml', ...flags], { files: { 'c.yaml': yaml(all) } });

  const good = {
    'nodes/serving.yaml': { request: request(), expect: { decision: 'permit' } },
    // As kubectl prints it: base64, with a status, which is not what is tested.
    'nodes/settled.json': {
      request: {
        ...request({ request: Buffer.from(pem).toString('base64') }),
        metadata: { name: 'csr-1', uid: 'u' },
        status: { conditions: [{ type: 'Denied', status: 'True' }] },
      },
      expect: { decision: 'permit' },
    },
    'usage.yml': {
      request: request({ usages: ['client auth'] }),
      expect: { decision: 'refuse', reasons: ['SignerValidationFailure'] },
    },
    'stranger.json': { request: request({ signerName: 'example.com/x' }), expect: { decision: 'ignore' } },
    'README.md': 'no case',
  };

  test('all as expected: 0', async () => {
    const { code, out } = await tried(folderOf(good), '-o', 'json');
    expect([code, JSON.parse(out)]).toMatchObject([0, { cluster: 'prod', cases: 4, failed: 0 }]);
  });

  test.each([
    ['another decision', { 'usage.yml': { ...good['usage.yml'], expect: { decision: 'permit' } } }],
    [
      'another reason',
      { 'usage.yml': { ...good['usage.yml'], expect: { decision: 'refuse', reasons: ['KeyNotPermitted'] } } },
    ],
    [
      'a further reason',
      {
        'usage.yml': {
          ...good['usage.yml'],
          expect: { decision: 'refuse', reasons: ['SignerValidationFailure', 'KeyNotPermitted'] },
        },
      },
    ],
    ['a refusal that became an approval', { 'usage.yml': { request: request(), expect: { decision: 'refuse' } } }],
  ])('%s: 1, and the case is named', async (_, change) => {
    const { code, out } = await tried(folderOf({ ...good, ...change }));
    expect(code).toBe(1);
    expect(out).toMatch(/✗ +.*usage\.yml/);
    expect(out).toContain('4 cases, 1 not as expected');
  });

  test.each([
    ['no expectation', { request: request() }, 'expect.decision must be'],
    ['no request', { expect: { decision: 'permit' } }, 'request is missing'],
    ['an unknown key', { request: request(), expect: { decision: 'permit' }, note: 1 }, 'unknown key note'],
    ['a mistyped key', { request: request(), expect: { decision: 'refuse', reason: 'x' } }, 'other keys than'],
    [
      'reasons for a permission',
      { request: request(), expect: { decision: 'permit', reasons: ['x'] } },
      'only with decision: refuse',
    ],
    [
      'no reasons at all',
      { request: request(), expect: { decision: 'refuse', reasons: [] } },
      'only with decision: refuse',
    ],
    ['no object', { request: { spec: {} }, expect: { decision: 'refuse' } }, 'apiVersion is not'],
    ['no document', '{', 'bad.yaml'],
  ])('a file with %s is a mistake, and no failed case: 3', async (_, bad, says) => {
    expect(await tried(folderOf({ ...good, 'bad.yaml': bad }))).toMatchObject({
      code: 3,
      err: expect.stringContaining(says) as string,
    });
  });

  test('a folder without cases does not pass', async () => {
    expect(await tried(folderOf({ 'README.md': '' }))).toMatchObject({ code: 4 });
    expect(await tried('/nonexistent')).toMatchObject({ code: 4, err: expect.stringContaining('no folder') as string });
  });
});

describe('config diff', () => {
  async function exported(): Promise<string> {
    const made = await ledgerFolder();
    await made.issued(now, { identity: 'aws#i-1' });
    await made.issued(now, {
      request: { key: newKey('P-384'), subject: { CN: 'alice', O: 'team' } },
      spec: {
        signerName: client,
        usages: ['client auth'],
        username: 'alice-login',
        groups: ['devs'],
        expirationSeconds: 86_400,
      },
    });
    await made.issued(now, {
      request: { key: newKey('P-256'), subject: { CN: 'bob', O: 'team' } },
      spec: { signerName: client, usages: ['client auth'], username: 'bob-login', groups: ['x'.repeat(600)] },
    });
    const { out } = await run(['cert', 'export', '--data', made.folder], { world: { now: () => now + hour } });
    return out;
  }
  const diff = (ledger: string, after: string, before = yaml(all)) =>
    run(['config', 'diff', 'old.yaml', 'new.yaml', '--ledger', 'e', '-o', 'json'], {
      files: { 'old.yaml': before, 'new.yaml': after, e: ledger },
    });
  interface Shown {
    readonly same: number;
    readonly different: number;
    readonly undecided: number;
    readonly differentRequests: readonly {
      readonly subject: string;
      readonly before: string;
      readonly after: string;
    }[];
    readonly undecidedRequests: readonly { readonly subject: string; readonly after: string }[];
  }
  const shown = (out: string) => JSON.parse(out) as Shown;
  const withClient = (change: object) => yaml({ ...all, [client]: { ...all[client], ...change } });

  test('the same rules decide alike: 0; so do rules that differ where no request is', async () => {
    const ledger = await exported();
    for (const after of [yaml(all), yaml({ ...all, [serving]: { ca: 'ca', maxTtl: '1d' } })]) {
      const { code, out } = await diff(ledger, after);
      expect([code, shown(out)]).toMatchObject([0, { compared: 3, same: 3, different: 0, undecided: 0 }]);
    }
  });

  test.each([
    ['a kind of key', { keys: ['P-256'] }, ['O=team, CN=alice'], /^refused \(KeyNotPermitted\): key kind/],
    ['the CA', { ca: 'web' }, ['O=team, CN=alice', 'O=team, CN=bob'], /^issued by CA web for/],
    ['a lifetime longer than which one asked', { maxTtl: '7d' }, ['O=team, CN=bob'], /for 7d/],
    ['names', { subject: { commonNames: ['bob'] } }, ['O=team, CN=alice'], /^refused \(/],
  ])('another value of %s: 1, and who it meets', async (_, change, subjects, after) => {
    const { code, out } = await diff(await exported(), withClient(change));
    const { differentRequests: rows, undecided } = shown(out);
    expect([code, undecided, rows.map(({ subject }) => subject).toSorted()]).toEqual([1, 0, subjects]);
    for (const row of rows)
      expect(row).toMatchObject({
        before: expect.stringMatching(/^issued by CA ca/) as string,
        after: expect.stringMatching(after) as string,
      });
  });

  test('a signer that is no longer served', async () => {
    const { [kubelet]: _, ...rest } = all;
    const { code, out } = await diff(await exported(), yaml(rest));
    expect([code, shown(out).differentRequests]).toMatchObject([
      1,
      [{ after: 'ignored: no profile has this signer name' }],
    ]);
  });

  test('what the ledger did not keep is not guessed: bob had too many groups', async () => {
    const { code, out } = await diff(await exported(), withClient({ requester: { groups: ['devs'] } }));
    expect([code, shown(out)]).toMatchObject([
      5,
      {
        same: 2,
        different: 0,
        undecided: 1,
        undecidedRequests: [
          { subject: 'O=team, CN=bob', after: expect.stringMatching(/^not decided: its requester/) as string },
        ],
      },
    ]);
    const users = await diff(await exported(), withClient({ requester: { users: ['bob-login'] } }));
    expect([users.code, shown(users.out)]).toMatchObject([
      1,
      { different: 1, undecided: 1, differentRequests: [{ subject: 'O=team, CN=alice' }] },
    ]);
  });

  test('a record of an early version, and keys that have to be fresh from now on, are not decided', async () => {
    const ledger = await exported();
    const early = ledger.replaceAll(/"(signerName|requester)":"[^"]*",/g, '');
    expect(shown((await diff(early, yaml(all))).out)).toMatchObject({ same: 0, undecided: 3 });
    expect(shown((await diff(ledger, withClient({ freshKeys: true }))).out)).toMatchObject({ same: 1, undecided: 2 });
  });

  test('as text: the request, before and after', async () => {
    const { out } = await run(['config', 'diff', 'old.yaml', 'new.yaml', '--ledger', 'e'], {
      files: { 'old.yaml': yaml(all), 'new.yaml': withClient({ keys: ['P-256'] }), e: await exported() },
    });
    expect(out).toMatch(
      /CN=alice +kubernetes.io\/kube-apiserver-client +alice-login\n +before: issued .*\n +after: +refused \(KeyNotPermitted\)/,
    );
    expect(out).toContain('3 issued requests: 2 decided as before, 1 differently, 0 not decided');
  });
});
