/** `countersign trace` over the records and the log lines that the real sign handler writes, and an API server of the test. */
import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { logEntry } from '../../../../adapters/lambda/log.ts';
import { signAnswer } from '../../../../adapters/lambda/answers.ts';
import type { AuditItem } from '../../../../core/ports/attestation-store.ts';
import { CommandFailure } from '../../../../cli/runtime/exit.ts';
import type { TracePlace } from '../../../../cli/runtime/io.ts';
import { pemBlocks } from '../../../../core/encoding/pem.ts';
import { run } from '../run.ts';
import { verdictOf } from '../register.ts';
import { at, created, issuedWorld, minute, now, seconds } from './issued-world.ts';

interface Shown {
  readonly uid: string;
  readonly name?: string;
  readonly requester?: string;
  readonly ledger?: Record<string, unknown>;
  readonly certificate?: Record<string, unknown>;
  readonly timeline: readonly { at: string; source: string; what: string; details: Record<string, unknown> }[];
  readonly unread: readonly { what: string; why: string; hint?: string }[];
}

describe('one request, from the relay to the ledger', () => {
  test('by its name: one timeline of all sources, with the ids of Lambda and KMS', async () => {
    const { trace, uid, certificate, stack } = await issuedWorld();
    const { code, out, err } = await trace(['node-csr-1', '--cluster', 'demo', '-o', 'json']);
    expect([code, err]).toEqual([0, '']);
    const shown = JSON.parse(out) as Shown;
    const [pem = ''] = pemBlocks(Buffer.from(certificate, 'base64').toString(), 'CERTIFICATE');
    const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
    const record = await stack.ledger.find(uid);
    expect(shown).toMatchObject({
      uid,
      name: 'node-csr-1',
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      requester: 'system:bootstrap:abcdef',
      cluster: 'demo',
      ledger: { state: 'issued', attempt: 2, kmsRequestId: 'kms-request-2', lambdaRequestId: 'invocation-2' },
      certificate: {
        serial: record?.serial,
        fingerprintSha256: createHash('sha256').update(der).digest('hex'),
        inStatus: 'this',
      },
      unread: [],
    });
    expect(shown.timeline.map(({ at, source, what }) => [(Date.parse(at) - created) / minute, source, what])).toEqual([
      [0, 'cluster', 'created'],
      [0.5, 'cluster', 'condition Approved'],
      [1, 'ledger', 'intent written'],
      [1, 'sign', 'answered'],
      [1 + 1 / minute, 'relay', 'request tried again'],
      [2, 'sign', 'answered'],
      [2.5, 'event', 'SigningDelayed'],
      [3, 'cluster', 'certificate written to the status'],
      [3, 'relay', 'request done'],
    ]);
    const answers = shown.timeline.filter(({ source }) => source === 'sign').map(({ details }) => details);
    expect(answers).toMatchObject([
      { outcome: 'busy', why: 'Unavailable', lambdaRequestId: 'invocation-1', 'error.awsRequestId': 'kms-request-1' },
      { outcome: 'issued', kmsRequestId: 'kms-request-2', lambdaRequestId: 'invocation-2', serial: record?.serial },
    ]);
    expect(out).not.toContain(Buffer.from(record!.tbs).toString('hex').slice(0, 60));
  });

  test('by its UID and by the serial number of its certificate: the same', async () => {
    const { trace, uid, stack } = await issuedWorld();
    const byName = await trace(['node-csr-1', '--cluster', 'demo']);
    const { serial = '' } = (await stack.ledger.find(uid)) ?? {};
    const colons = serial.toUpperCase().replaceAll(/(..)(?=.)/g, '$1:');
    for (const argv of [[uid], ['--serial', serial], ['--serial', `00:${colons}`]])
      expect(await trace([...argv, '--cluster', 'demo'])).toEqual(byName);
    expect(byName.out).toMatch(/^request {9}node-csr-1, UID /);
    expect(byName.out).toContain('KMS request     kms-request-2\n');
    expect(byName.out).toContain('in the status   yes, this certificate\n');
  });

  test('deleted from the cluster: its name is found in the functions’ logs', async () => {
    const { trace, cluster, sources } = await issuedWorld();
    cluster.requests.clear();
    const { code, out } = await trace(['node-csr-1', '--cluster', 'demo', '-o', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ ledger: { state: 'issued' }, unread: [] });
    expect(sources.searches[0]).toMatchObject({
      pattern: '{ $.name = "node-csr-1" }',
      from: now - 24 * 60 * minute,
      to: now,
    });
    const short = await trace(['node-csr-1', '--cluster', 'demo', '--since', '5m']);
    expect([short.code, short.out]).toEqual([4, '']);
  });

  test('several requests with one name are not mixed up', async () => {
    const { trace, cluster, lines } = await issuedWorld();
    cluster.requests.clear();
    lines.push({ at: now - 1, of: 'attest', text: JSON.stringify({ uid: 'second', name: 'node-csr-1' }) });
    const { code, out, err } = await trace(['node-csr-1', '--cluster', 'demo']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/2 requests with this name\ncountersign: name one by its UID: second, [0-9a-f-]{36}\n/);
  });

  test('a later request of the same name in the cluster is not taken for this one', async () => {
    const { trace, uid, cluster, csr } = await issuedWorld();
    cluster.requests.set('node-csr-1', { ...csr, metadata: { ...csr.metadata, uid: randomUUID() } });
    const shown = JSON.parse((await trace([uid, '--cluster', 'demo', '-o', 'json'])).out) as Shown;
    expect(shown.requester).toBeUndefined();
    expect(shown.certificate).not.toHaveProperty('inStatus');
  });

  test('the verdict, and what operators changed about its machine', async () => {
    const { trace, uid, sources } = await issuedWorld();
    const identity = 'aws#aws/111122223333/eu-central-1/i-1';
    const decidedAt = created + minute / 4;
    sources.verdicts.set(uid, verdictOf('n1', [], { uid, identity, mode: 'enforce', decidedAt }));
    const item = (id: string, subject: string): AuditItem => ({
      id,
      at: created - minute,
      by: 'ada',
      action: 'reset',
      subject,
      reason: 'r',
    });
    sources.audit.push(item('1', identity), item('2', 'aws#another'), { ...item('3', 'aws#old'), nodeName: 'n1' });
    const shown = JSON.parse((await trace([uid, '--cluster', 'demo', '-o', 'json'])).out) as Shown;
    expect(shown).toMatchObject({ verdict: { decision: 'approve', mode: 'enforce', identity } });
    expect(shown.timeline.slice(0, 4)).toMatchObject([
      { source: 'audit', what: 'reset', details: { id: '1', by: 'ada' } },
      { source: 'audit', details: { id: '3' } },
      { source: 'cluster', what: 'created' },
      { source: 'verdict', what: 'stored: approve' },
    ]);
  });

  test('another signer’s certificate in the status is named', async () => {
    const { trace, cluster, csr } = await issuedWorld();
    const other = await issuedWorld();
    cluster.requests.set('node-csr-1', { ...csr, status: { certificate: other.certificate } });
    expect((await trace(['node-csr-1', '--cluster', 'demo'])).out).toContain('in the status   ANOTHER certificate');
  });

  test('an invocation that ran out of time wrote no line: Lambda’s own line is shown', async () => {
    const { trace, stack, lines, sources } = await issuedWorld();
    const uid = randomUUID();
    const intent = {
      requestDigest: 'd',
      caKeyId: 'k',
      tbs: Uint8Array.of(1),
      serial: 'ab',
      notAfter: now,
      openedAt: created,
    };
    await stack.ledger.open({ uid, ...intent, leaseUntil: created + 30_000, lambdaRequestId: 'invocation-3' });
    const line = `${at(created + 25_000)} invocation-3 Task timed out after 25.00 seconds`;
    lines.push(
      { at: created + 25_000, of: 'sign', text: line },
      { at: created, of: 'sign', text: 'START RequestId: invocation-3' },
    );
    const shown = JSON.parse((await trace([uid, '--cluster', 'demo', '-o', 'json'])).out) as Shown;
    expect(shown.timeline.map(({ source, what }) => [source, what])).toEqual([
      ['ledger', 'intent written'],
      ['sign', 'the invocation ended without an answer'],
    ]);
    expect(shown.timeline[1]?.details).toEqual({ line });
    expect(sources.searches.at(-1)?.pattern).toBe('"invocation-3"');
  });
});

describe('what cannot be read', () => {
  const denied = (what: string): Promise<never> =>
    Promise.reject(new CommandFailure(3, `${what} refuses: AccessDeniedException: may not`, `it needs ${what}:Read`));

  test('is named with its permission, and the rest is shown', async () => {
    const { trace, cluster, uid } = await issuedWorld();
    cluster.forbidden.push(/\/events$/, /\/pods$/);
    const { code, out } = await trace(['node-csr-1', '--cluster', 'demo', '-o', 'json'], {
      findVerdict: () => denied('DynamoDB'),
      searchLog: ({ of }) => (of === 'sign' ? denied('Logs') : Promise.resolve(undefined)),
    });
    expect(code).toBe(0);
    const { timeline, unread, uid: shownUid } = JSON.parse(out) as Shown;
    expect(shownUid).toBe(uid);
    expect(timeline.map(({ source }) => source)).toEqual(['cluster', 'cluster', 'ledger', 'cluster']);
    expect(unread.map(({ what, hint }) => [what, hint])).toEqual([
      ['the verdict', 'it needs DynamoDB:Read'],
      ['the log of the sign function', 'it needs Logs:Read'],
      ['its Events', 'it needs list on events in the namespace default'],
      ['the log of the relay', 'it needs list on pods'],
    ]);
    const text = await trace(['node-csr-1', '--cluster', 'demo'], { findVerdict: () => denied('DynamoDB') });
    expect(text.out).toContain(
      '\nNot read:\n  the verdict: DynamoDB refuses: AccessDeniedException: may not\n    it needs DynamoDB:Read\n',
    );
  });

  test('a cluster that cannot be reached: the records are shown, and it is asked once', async () => {
    const { uid, open, lines } = await issuedWorld();
    expect(lines.length).toBe(2);
    const { code, out } = await run(['trace', uid, '--cluster', 'demo', '-o', 'json'], {
      environment: { KUBECONFIG: '/nonexistent/kubeconfig' },
      world: { now: () => now, openTrace: async () => open },
    });
    expect(code).toBe(0);
    expect((JSON.parse(out) as Shown).unread).toEqual([
      {
        what: 'the cluster',
        why: 'there is no kubeconfig /nonexistent/kubeconfig',
        hint: 'name one: --kubeconfig FILE, or KUBECONFIG',
      },
    ]);
  });

  test('a search that ended early says so', async () => {
    const { trace, uid, open } = await issuedWorld();
    const { out } = await trace([uid, '--cluster', 'demo', '-o', 'json'], {
      searchLog: async (search) => ({ ...(await open.searchLog(search))!, endedEarly: 'after 50 pages' }),
    });
    expect((JSON.parse(out) as Shown).unread).toEqual([
      { what: 'the log of the attest function', why: 'the search ended after 50 pages' },
      { what: 'the log of the sign function', why: 'the search ended after 50 pages' },
    ]);
  });

  test('nothing found: 4 if everything was read, else 5', async () => {
    const { trace } = await issuedWorld();
    const nothing = await trace(['gone', '--cluster', 'demo']);
    expect([nothing.code, nothing.out]).toEqual([4, '']);
    const partly = await trace(['gone', '--cluster', 'demo'], { searchLog: () => denied('Logs') });
    expect([partly.code, partly.out]).toEqual([5, '']);
    expect(partly.err).toContain('the log of the sign function: Logs refuses');
    const unknown = await trace([randomUUID(), '--cluster', 'demo']);
    expect([unknown.code, unknown.out]).toEqual([4, '']);
  });
});

describe('which request, in which cluster', () => {
  const yaml = (...names: readonly string[]) =>
    `version: 1\nclusters:\n${names
      .map(
        (name) =>
          `  ${name}: {aws: {region: eu-west-1}, cas: {ca: {subject: {commonName: CA}}}, profiles: {kubernetes.io/kubelet-serving: {}}}\n`,
      )
      .join('')}`;

  test.each([
    [[], 'which request?'],
    [['a', '--serial', 'ab'], 'which request?'],
    [['--serial', 'xyz'], 'up to 40 hexadecimal digits'],
    [['a', '--since', 'yesterday'], 'It must look like'],
    [['a', '--data', 'd', '--region', 'eu-west-1'], 'cannot be used with'],
    [['a'], 'which cluster?'],
  ])('%j', async (argv, message) => {
    const { code, err } = await run(['trace', ...argv]);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });

  test('the file names the cluster and its region; a flag comes first', async () => {
    const { open } = await issuedWorld();
    const places: TracePlace[] = [];
    const openTrace = async (place: TracePlace) => {
      places.push(place);
      return open;
    };
    const environment = { KUBECONFIG: '/nonexistent/kubeconfig' };
    const files = { 'one.yaml': yaml('prod'), 'two.yaml': yaml('a', 'b') };
    const place = async (...argv: readonly string[]) => {
      const { err } = await run(['trace', 'gone', ...argv], { files, environment, world: { openTrace } });
      return places.pop() ?? err;
    };
    const prod = { kind: 'deployed', cluster: 'prod', region: 'eu-west-1' };
    expect(await place('--config', 'one.yaml')).toEqual(prod);
    expect(await place('--config', 'one.yaml', '--region', 'us-east-1')).toEqual({ ...prod, region: 'us-east-1' });
    expect(await place('--config', 'two.yaml')).toContain('two.yaml has several clusters');
    expect(await place('--config', 'two.yaml', '--cluster', 'c')).toContain('two.yaml has no cluster c');
    expect(await place('--cluster', 'c')).toEqual({ kind: 'deployed', cluster: 'c', region: undefined });
    expect(await place('--data', './data/demo')).toEqual({ kind: 'embedded', folder: './data/demo' });
  });
});

test('finding 23: hostile names, messages and lines steer no terminal', async () => {
  const { trace, cluster, csr, uid, lines } = await issuedWorld();
  const hostile = 'a\u001b[31mb\u009b2J\u202ec\u200b\u2028\r\b\n{"forged":1}';
  const condition = { type: hostile, reason: hostile, message: hostile, lastUpdateTime: seconds(created) };
  cluster.requests.set('node-csr-1', {
    ...csr,
    spec: { ...csr.spec, username: hostile, signerName: hostile },
    status: { conditions: [condition], certificate: Buffer.from(hostile).toString('base64') },
  });
  cluster.events.push({ involvedObject: { uid }, eventTime: at(created), reason: hostile, message: hostile });
  const answer = signAnswer({ kind: 'invalid', message: 'x' }, undefined);
  lines.push({ at: created, of: 'sign', text: JSON.stringify({ ...logEntry(answer, 1, { uid }), identity: hostile }) });
  const text = await trace(['node-csr-1', '--cluster', 'demo']);
  expect(text.code).toBe(0);
  for (const line of text.out.split('\n')) expect(line).not.toMatch(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/u);
  expect(text.out).not.toMatch(/^\{"forged"/m);
  const json = await trace(['node-csr-1', '--cluster', 'demo', '-o', 'json']);
  expect(json.out.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/u);
  expect(json.out).toContain('"source": "sign"');
});
