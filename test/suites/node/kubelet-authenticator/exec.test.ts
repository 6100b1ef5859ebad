import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { cacheFiles, printed, secretsOf } from '../../../harness/node/authenticator-output.ts';
import {
  bootstrapToken,
  signers,
  startAuthenticatorSite,
  type AuthenticatorSite,
  type Node,
  type Program,
} from '../../../harness/node/authenticator-site.ts';
import { onlyDeep } from '../../../harness/determinism/tier.ts';

const minute = 60_000;
const day = 86_400_000;

describe('a node and its client certificate', () => {
  let site: AuthenticatorSite;
  beforeAll(async () => {
    site = await startAuthenticatorSite();
  });
  beforeEach(async () => {
    site.api('up');
    await site.signing('up');
  });
  afterAll(() => site?.close());

  const requestsOf = async (name: string) =>
    (await site.requests()).filter(({ pem }) => {
      const decoded = decodeRequest(Buffer.from(pem));
      return decoded.ok && decoded.value.subject.commonName === `system:node:${name}`;
    });
  /** Sets the test's clock to the moment that client-go asks again. */
  const goTo = (moment: number) => site.platform.advance(moment - site.platform.now() + 1_000);
  /**
   * client-go waits five seconds at most. A busy machine takes longer for everything: meanwhile the program runs with nothing
   * to do, every half second, and the slowest of these runs shows how much longer.
   */
  async function runInTime(node: Node): Promise<Program> {
    let running = true;
    const answer = node.run().finally(() => (running = false));
    let forNothing = 0;
    while (running) {
      forNothing = Math.max(forNothing, (await node.run({ args: ['version'] })).milliseconds);
      await sleep(500);
    }
    const program = await answer;
    expect(program.milliseconds).toBeLessThan(5_000 + 5 * forNothing);
    return program;
  }

  test('joins with a bootstrap token and the proof of its machine', async () => {
    const node = await site.node('joins');
    const before = site.platform.now();
    const program = await node.run();
    const { certificate, keyPem, expires } = printed(program);

    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:joins');
    expect(certificate.verify(new X509Certificate(readFileSync(site.clientCaFile)).publicKey)).toBe(true);
    const [request, ...others] = await requestsOf('joins');
    expect(others).toEqual([]);
    expect(request).toMatchObject({ username: 'system:bootstrap:abcdef', signerName: signers.client });
    expect(request!.name).toMatch(/^node-csr-[0-9a-f]{32}$/);
    const decoded = decodeRequest(Buffer.from(request!.pem));
    expect(decoded).toMatchObject({ value: { providerId: `aws:///eu-central-1a/${node.instanceId}` } });
    expect(decoded).toMatchObject({ value: { publicKey: { kind: 'P-256' }, sans: { dns: [], ip: [] } } });

    // 70 to 80 % of the way from now, not from the backdated notBefore, to notAfter.
    const share = (expires - before) / (certificate.validToDate.getTime() - before);
    expect(share).toBeGreaterThan(0.699);
    expect(share).toBeLessThan(0.801);
    expect(certificate.validToDate.getTime() - expires).toBeGreaterThan(3 * day);

    expect(statSync(node.cache).mode & 0o777).toBe(0o700);
    for (const name of Object.keys(cacheFiles(node)))
      expect([name, statSync(join(node.cache, name)).mode & 0o777]).toEqual([name, 0o600]);
    expect(Object.keys(cacheFiles(node)).toSorted()).toEqual(['client-copy.pem', 'client.lock', 'client.pem']);
    for (const secret of secretsOf(node, keyPem.slice(30, 60), bootstrapToken))
      expect(program.stderr).not.toContain(secret);
    expect(program.stderr).toContain(request!.name);
  });

  test('answers again from its cache, to the byte, and sends no request', async () => {
    const node = await site.node('cached');
    const first = await node.run();
    const calls = site.calls.length;
    site.api('down');
    const second = await node.run({ env: { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:1' } });
    expect(second).toMatchObject({ code: 0, stdout: first.stdout, stderr: '' });
    expect(site.calls).toHaveLength(calls);
    const beta = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1beta1',
      kind: 'ExecCredential',
      spec: {},
    });
    const older = await node.run({ env: { KUBERNETES_EXEC_INFO: beta } });
    expect(JSON.parse(older.stdout)).toEqual({
      ...(JSON.parse(first.stdout) as object),
      apiVersion: 'client.authentication.k8s.io/v1beta1',
    });
  });

  test('renews as itself, with a new key and a new proof, at the expiration that it printed', async () => {
    const node = await site.node('renews');
    const first = printed(await node.run());
    goTo(first.expires);
    const second = printed(await node.run());
    expect(second.keyPem).not.toBe(first.keyPem);
    expect(second.expires).toBeGreaterThan(first.expires);
    const requests = await requestsOf('renews');
    expect(requests.map(({ username }) => username).toSorted()).toEqual([
      'system:bootstrap:abcdef',
      'system:node:renews',
    ]);
    expect(printed(await node.run()).certificatePem).toBe(second.certificatePem);
  });

  test.each(onlyDeep)(
    'keeps answering while the signer is down, for longer than the renewal window, and renews when it is back',
    async () => {
      const node = await site.node('waits');
      const first = printed(await node.run());
      await site.signing('down');
      goTo(first.expires);
      const keys = new Set<string>();
      let calls = 0;
      // First in the steps that the program itself asks for, then in larger ones, almost to the certificate's end.
      const end = first.certificate.validToDate.getTime();
      for (; site.platform.now() < end - day; calls += 1) {
        const program = await runInTime(node);
        const answer = printed(program);
        expect(answer.certificatePem).toBe(first.certificatePem);
        expect(answer.expires).toBeGreaterThan(site.platform.now());
        expect(program.stderr).toContain('waits for its approval');
        keys.add((JSON.parse(cacheFiles(node)['client-next.json']!) as { keyPem: string }).keyPem);
        goTo(Math.max(answer.expires, calls > 4 ? site.platform.now() + day : 0));
      }
      expect(keys.size).toBe(1);
      // One each time the evidence before it had grown old, ever less often.
      const made = (await requestsOf('waits')).length;
      expect(made).toBeGreaterThan(3);
      expect(made).toBeLessThan(calls + 2);

      await site.signing('up');
      const late = printed(await node.run());
      expect(late.keyPem).toBe([...keys][0]);
      expect(late.certificatePem).not.toBe(first.certificatePem);
      expect(late.certificate.validToDate.getTime()).toBeGreaterThan(first.certificate.validToDate.getTime());
    },
    240_000,
  );

  test.each(['down', 'hangs'] as const)('answers in time with what it has when the API server %s', async (state) => {
    const node = await site.node(`api-${state}`);
    const first = printed(await node.run());
    goTo(first.expires);
    site.api(state);
    const program = await runInTime(node);
    expect(printed(program).certificatePem).toBe(first.certificatePem);
    site.api('up');
    // On a busy machine a call may end before the certificate is there. Then it prints when the kubelet calls again.
    await expect
      .poll(async () => {
        const { certificatePem, expires } = printed(await node.run());
        goTo(expires);
        return certificatePem;
      })
      .not.toBe(first.certificatePem);
  });

  test('waits on a later call for what an earlier one asked', async () => {
    const node = await site.node('later');
    await site.signing('down');
    // Again where a busy machine took all of it to get as far as asking.
    const stderr = expect.stringContaining('waits for its approval') as unknown;
    const early = () => node.run({ args: ['exec', '--wait', '2'] });
    await expect.poll(early).toMatchObject({ code: 5, stdout: '', stderr });
    await site.signing('up');
    printed(await node.run());
    expect(await requestsOf('later')).toHaveLength(1);
  });

  test('a node that was away until its certificate expired comes back with another token and its old key', async () => {
    const node = await site.node('away');
    const first = printed(await node.run());
    goTo(first.certificate.validToDate.getTime());
    const without = await node.run();
    expect(without).toMatchObject({ code: 3, stdout: '' });
    expect(without.stderr).toContain('kubelet-authenticator join with a new token');
    writeFileSync(join(node.cache, '../bootstrap.json'), JSON.stringify({ token: bootstrapToken }));
    const program = await node.run();
    expect(program.stderr).toContain('expired at');
    const second = printed(program);
    expect(second.keyPem).toBe(first.keyPem);
    expect((await requestsOf('away')).map(({ username }) => username)).toEqual(
      Array(2).fill('system:bootstrap:abcdef'),
    );
  });

  test('an expired renewal finds out which of its two keys the machine is registered with', async () => {
    const node = await site.node('two-keys', { settings: { keepBootstrapToken: true } });
    const first = printed(await node.run());
    await site.signing('down');
    goTo(first.expires);
    await node.run();
    goTo(first.certificate.validToDate.getTime());
    await site.signing('up');
    // The relay, back, sees old evidence and says no: the new key was never registered.
    const second = printed(await node.run());
    expect(second.keyPem).toBe(first.keyPem);
  });

  test('a second machine under the name of the first is refused with the reason, and does not ask again at once', async () => {
    await site
      .node('taken')
      .then((node) => node.run())
      .then(printed);
    const thief = await site.node('taken');
    const program = await thief.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain('(TofuNodeTaken)');
    expect(program.stderr).toContain('belongs to another machine');
    const posts = () => site.calls.filter((call) => call.startsWith('POST')).length;
    const before = posts();
    const again = await thief.run();
    expect(again).toMatchObject({ code: 1 });
    expect(again.stderr).toContain('(TofuNodeTaken)');
    expect(posts()).toBe(before);
    // It asks again later, and ever later.
    site.platform.advance(1.1 * minute);
    await thief.run();
    expect(posts()).toBe(before + 1);
    site.platform.advance(1.1 * minute);
    await thief.run();
    expect(posts()).toBe(before + 1);
  });

  test('a bootstrap token that is not taken any more is named, and nothing is asked', async () => {
    const node = await site.node('no-token');
    const file = join(node.cache, '../bootstrap.json');
    writeFileSync(file, JSON.stringify({ token: 'ffffff.ffffffffffffffff' }));
    const program = await node.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain('the bootstrap credential (system:bootstrap:ffffff) is not accepted');
    expect(program.stderr).not.toContain('ffffffffffffffff');
    // A kubeconfig in YAML, as kubeadm writes it.
    const yaml = `apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: x, user: u}\nusers:\n- name: u\n  user:\n    token: ${bootstrapToken}\n`;
    writeFileSync(file, yaml);
    printed(await node.run());
  });

  test('a certificate of a CA that is trusted no more is not presented, and another is asked for', async () => {
    const node = await site.node('other-ca', { settings: { keepBootstrapToken: true } });
    const first = printed(await node.run());
    const bundle = join(node.cache, '../bundle.pem');
    writeFileSync(bundle, readFileSync(join(site.folder, 'server-ca.pem')));
    const program = await node.run({ args: ['exec', '--client-ca-bundle', bundle] });
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain('which is not in the client CA bundle');
    expect(printed(await node.run()).certificatePem).toBe(first.certificatePem);
  });

  test('ten at once on an empty cache make one request and print one certificate', async () => {
    const node = await site.node('ten');
    const programs = await Promise.all(Array.from({ length: 10 }, () => node.run()));
    expect(new Set(programs.map((program) => printed(program).certificatePem)).size).toBe(1);
    expect(await requestsOf('ten')).toHaveLength(1);
    // And at the renewal, where no process waits for another: one new request, and never anything but one of the two.
    const { expires, certificatePem } = printed(programs[0]!);
    goTo(expires);
    const renewals = (await Promise.all(Array.from({ length: 10 }, () => node.run()))).map(printed);
    const current = printed(await node.run());
    expect(await requestsOf('ten')).toHaveLength(2);
    for (const each of renewals) expect([certificatePem, current.certificatePem]).toContain(each.certificatePem);
  });
});

describe('a cluster that wants fresh keys', () => {
  let site: AuthenticatorSite;
  beforeAll(async () => {
    site = await startAuthenticatorSite({ profile: { freshKeys: true } });
  });
  afterAll(() => site?.close());

  test('a key that was certified already, in a certificate that got lost, is given up for a new one', async () => {
    const node = await site.node('fresh');
    const first = printed(await node.run());
    const old = cacheFiles(node);
    site.platform.advance(first.expires - site.platform.now() + 1_000);
    const second = printed(await node.run());
    // As a disk that went back to yesterday: the old certificate, and the new key without its certificate.
    for (const name of ['client.pem', 'client-copy.pem']) writeFileSync(join(node.cache, name), old[name]!);
    const state = { version: 1, unanswered: 0, refusals: 0, retries: 0, keysGivenUp: 0, keyPem: second.keyPem };
    writeFileSync(join(node.cache, 'client-next.json'), JSON.stringify({ ...state, purpose: await purposeOf(node) }));
    const program = await node.run();
    expect(program.stderr).toContain('(KeyReused)');
    const third = printed(program);
    expect([first.keyPem, second.keyPem]).not.toContain(third.keyPem);
  });
});

async function purposeOf({ settingsFile }: { readonly settingsFile: string }): Promise<string> {
  const [{ purposeOf: purpose }, { resolveSettings }, { clientUsages }] = await Promise.all([
    import('../../../../kubelet-authenticator/credential/work.ts'),
    import('../../../../kubelet-authenticator/settings/settings.ts'),
    import('../../../../kubelet-authenticator/request/request.ts'),
  ]);
  const resolved = resolveSettings(readFileSync(settingsFile, 'utf8'));
  if (!resolved.ok) throw new Error(resolved.problem.join());
  const { signerName } = resolved.value;
  return purpose(resolved.value, { signerName, usages: clientUsages, names: { ip: [], dns: [] } });
}

describe('a cluster without proofs', () => {
  let site: AuthenticatorSite;
  beforeAll(async () => {
    site = await startAuthenticatorSite({ provider: 'insecure' });
  });
  afterAll(() => site?.close());

  test('the first of a name joins, and asks again as it did, for the same key', async () => {
    const node = await site.node('n1', { signerName: signers.insecure });
    const first = printed(await node.run());
    site.platform.advance(first.expires - site.platform.now() + 1_000);
    const second = printed(await node.run());
    expect(second.keyPem).toBe(first.keyPem);
    expect(second.certificatePem).not.toBe(first.certificatePem);
    const other = await site.node('n1', { signerName: signers.insecure });
    const program = await other.run();
    expect(program).toMatchObject({ code: 1 });
    expect(program.stderr).toContain('TofuReuse');
  });
});
