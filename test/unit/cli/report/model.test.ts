/** The report as a value: what each part of the facts becomes, and what needs an operator. */
import { expect, test } from 'vitest';
import { latestOfHolders, stateOf } from '../../../../cli/report/model/certificates.ts';
import type { Facts } from '../../../../cli/report/model/facts.ts';
import { reportOf } from '../../../../cli/report/model/report.ts';
import type { Report } from '../../../../cli/report/model/shape.ts';
import {
  busyFacts,
  client,
  day,
  held,
  hour,
  nodeName,
  record,
  request,
  sampleFacts,
  serving,
  verdict,
} from '../../../harness/report/sample-facts.ts';
import { ledgerFolder } from '../inventory/ledger.ts';
import { now as at } from '../run.ts';

const read = <T>(value: T) => ({ state: 'read', value }) as const;
const codes = ({ attention }: Report) => attention.map(({ level, code }) => `${level} ${code}`);
const records = { verdicts: [], identities: [], machines: [], locks: [] };

/** A cluster without anything, changed. */
async function facts(change: Partial<Facts> = {}): Promise<Facts> {
  return { ...(await sampleFacts(0, at)), ...change };
}

test('a certificate goes through its states at 70, 90 and 100 % of its lifetime', () => {
  const state = (used: number, change = {}) =>
    stateOf(held('n', { at, lifetime: 100 * hour, left: (100 - used) * hour, ...change }), at);
  expect([0, 69.9, 70, 89.9, 90, 99.9, 100, 200].map((used) => state(used))).toEqual([
    'valid',
    'valid',
    'due',
    'due',
    'late',
    'late',
    'ended',
    'ended',
  ]);
  expect([state(10, { revoked: true }), state(100, { revoked: true })]).toEqual(['revoked', 'ended']);
});

test('of each holder and signer the latest certificate that is not revoked counts', async () => {
  const ledger = await ledgerFolder();
  const nodes = ['n1', 'n1', 'n2', 'n2'];
  const all = [];
  for (const [index, name] of nodes.entries())
    all.push(
      await ledger.issued(at - (10 - index) * day, {
        request: { subject: { O: 'system:nodes', CN: `system:node:${name}` } },
      }),
    );
  const [, newest, older, revoked] = all;
  const { held: found, more } = await latestOfHolders(
    (async function* () {
      yield* all.toSorted((a, b) => a.notAfter - b.notAfter);
    })(),
    async ({ serial }) => (serial === revoked?.serial ? ({} as never) : undefined),
  );
  expect(more).toBe(false);
  expect(found.map(({ holder, node, serial, revoked: is }) => [holder, node, serial, is])).toEqual([
    ['n1', true, newest?.serial, false],
    ['n2', true, older?.serial, false],
  ]);
});

test('a cluster in which nothing is wrong needs nothing', async () => {
  const report = reportOf(await sampleFacts(12, at));
  expect(report.attention).toEqual([]);
  expect(
    report.fleet.map(({ standing }) => standing).filter((standing) => !['valid', 'due'].includes(standing)),
  ).toEqual([]);
  expect(report.fleet[0]).toMatchObject({
    inCluster: true,
    machine: expect.stringMatching(/^aws#/) as string,
    certificates: [{ signerName: expect.stringMatching(/kubelet/) as string }, {}],
  });
  expect(report.cas).toMatchObject([
    { name: 'ca', holders: 24, signerNames: expect.arrayContaining([client]) as string[] },
  ]);
  expect(report.trust.map(({ name, unread }) => [name, unread])).toEqual([
    ['kube-apiserver --client-ca-file', undefined],
    ['kubelet --client-ca-file', 'hidden'],
  ]);
  expect(report.trust[0]?.cas).toEqual({ ca: 'trusted' });
});

test('a busy day: what needs action comes first, each with its names', async () => {
  const report = reportOf(await busyFacts(40, at));
  expect(codes(report)).toEqual([
    'act NodeEnded',
    'act NodeLate',
    'act FirstUseConflict',
    'act RequestWaits',
    'watch RequestRefused',
    'watch EnforcingWouldRefuse',
  ]);
  expect(report.attention[0]).toMatchObject({
    text: '2 nodes have a certificate that ended',
    section: 'nodes',
    standing: 'ended',
    examples: [nodeName(1), nodeName(4)],
  });
  expect(report.conflicts).toMatchObject([{ node: nodeName(10), code: 'TofuNodeTaken', times: 2 }]);
  expect(report.requests.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending', 'failed', 'refused']);
  expect(report.requests[0]?.name, 'the longest wait first').toBe('node-csr-x7k2p');
  expect(report.fleet.find(({ node }) => node === nodeName(13))?.standing).toBe('locked');
  expect(report).toMatchObject({ nodes: 3, failing: 2, passing: 1 });
});

test('a node that left the cluster may have a certificate that ended; without the cluster it is not known', async () => {
  const certificates = read([held('gone', { at, left: -hour }), held('there', { at, left: -hour })]);
  const known = reportOf(await facts({ certificates, nodes: read(['there']) }));
  expect(known.fleet.map(({ node, standing }) => [node, standing])).toEqual([
    ['there', 'ended'],
    ['gone', 'gone'],
  ]);
  expect(codes(known)).toEqual(['act NodeEnded']);
  const unknown = reportOf(await facts({ certificates, nodes: { state: 'notAsked', why: 'no flag' } }));
  expect(codes(unknown)).toEqual(['watch NodeEnded']);
  expect(unknown.attention[0]?.advice).toContain('--kubeconfig tells them apart');
});

test('a Node object without a certificate in the ledger, and a revoked node', async () => {
  const certificates = read([held('revoked', { at, left: hour * 20, revoked: true })]);
  const report = reportOf(await facts({ certificates, nodes: read(['new', 'revoked']) }));
  expect(report.fleet.map(({ node, standing }) => [node, standing])).toEqual([
    ['new', 'none'],
    ['revoked', 'revoked'],
  ]);
  expect(codes(report)).toEqual(['watch NodeWithoutCertificate']);
  // No record at all: the cluster does not use attestation, and enforcing refuses nothing.
  expect(report).toMatchObject({ nodes: 0, failing: 0, rows: [] });
});

test('a lock of a machine is a lock of its node', async () => {
  const identities = [record('n1', 1, at)];
  const locks = [{ id: 'l', identity: identities[0]?.identity ?? '', at, by: 'alice', reason: 'r' }];
  const report = reportOf(await facts({ records: read({ ...records, identities, locks }), nodes: read(['n1']) }));
  expect(report.fleet[0]?.standing).toBe('locked');
  expect(report.locks).toEqual([
    { machine: identities[0]?.identity, since: '2026-06-01T12:00:00Z', by: 'alice', reason: 'r' },
  ]);
});

test.each([
  ['ended', -1, 'act CaEnded'],
  ['with 29 days left', 29.5, 'act CaEndsSoon'],
  ['with 89 days left', 89.5, 'watch CaEndsSoon'],
])('a CA %s', async (_, days, expected) => {
  const { cas } = await sampleFacts(0, at);
  if (cas.state !== 'read') throw new Error('no CA');
  const end = Date.parse(reportOf(await facts()).cas[0]?.notAfter ?? '');
  const report = reportOf(await facts({ at: end - days * day, cas }));
  expect(codes(report)).toContain(expected);
});

test('a CA that is not in force, and one that the cluster does not trust', async () => {
  const { cas, trust } = await sampleFacts(0, at);
  if (cas.state !== 'read' || trust.state !== 'read') throw new Error('no CA');
  const waits = { name: 'next', fault: 'its certificate was not imported yet' };
  const one = reportOf(await facts({ cas: read({ ...cas.value, cas: [...cas.value.cas, waits] }) }));
  expect(codes(one)).toEqual(['act CaNotInForce', 'act CaNotTrusted']);
  expect(one.attention[0]?.text).toBe('CA next is not in force: its certificate was not imported yet');
  const [verifier] = trust.value;
  if (verifier === undefined) throw new Error('no verifier');
  const distrusted = reportOf(await facts({ cas, trust: read([{ ...verifier, bundle: '' }]) }));
  expect(codes(distrusted)).toEqual(['act CaNotTrusted']);
  // Its bundle has another CA, and it never meets these certificates.
  const other = reportOf(await facts({ cas, trust: read([{ ...verifier, bundle: '', concern: 'none' }]) }));
  expect(other.trust).toEqual([]);
});

test('a request waits only after ten minutes, and one without a readable request says why', async () => {
  const report = reportOf(
    await facts({
      requests: read([
        request('fresh', at - 9 * 60_000),
        request('issued', at - day, { state: 'issued' }),
        request('odd', at - day, { state: 'failed', asked: { problem: 'not a certificate request' } }),
      ]),
    }),
  );
  expect(codes(report)).toEqual(['watch RequestRefused']);
  expect(report.requests.map(({ name, subject }) => [name, subject])).toEqual([
    ['fresh', 'O=system:nodes, CN=system:node:fresh'],
    ['odd', 'cannot be read: not a certificate request'],
  ]);
});

test('what attest refused is shown once: as the request while the cluster has it, else from the records', async () => {
  const verdicts = [
    verdict('n1', at - hour, 'AttestationMissing', 'no evidence'),
    verdict('n1', at - 2 * hour, 'AttestationMissing', 'no evidence'),
    verdict('n2', at - hour, 'AttestationMissing', 'no evidence', { uid: 'uid-known' }),
    verdict('n3', at - hour, 'AttestationMissing', 'no evidence', { mode: 'audit' }),
    verdict('n4', at - hour, 'AttestationChallenge', 'answer it', { decision: 'challenge' }),
  ];
  const requests = read([request('known', at - hour, { state: 'denied', reason: 'AttestationMissing' })]);
  const report = reportOf(await facts({ requests, records: read({ ...records, verdicts }) }));
  expect(report.requests.map(({ name, state, subject, times }) => [name, state, subject, times])).toEqual([
    ['known', 'denied', 'O=system:nodes, CN=system:node:known', undefined],
    [undefined, 'refused', 'node n1', 2],
  ]);
});

test('two keys after one restart are a conflict, and a machine that its platform does not know is named', async () => {
  const restart = { startedAt: at - hour, since: at - hour, spkiSha256: 'aa', contested: true };
  const identities = [
    record('n1', 1, at, { restart }),
    record('n2', 2, at, { unknownSince: at - hour }),
    record('n3', 3, at, { state: 'retired' }),
  ];
  const report = reportOf(await facts({ records: read({ ...records, identities }) }));
  expect(report.conflicts).toMatchObject([{ node: 'n1', code: 'RestartContested', holder: identities[0]?.identity }]);
  expect(report.machines).toMatchObject({ active: 2, retired: 1, unknown: [{ node: 'n2' }] });
  expect(codes(report)).toEqual(
    ['act FirstUseConflict', 'watch MachineUnknown', 'watch NodeWithoutCertificate'].slice(0, 2),
  );
});

test('nothing was read: every part says why, and no number is invented', () => {
  const failed = { state: 'failed', why: 'AccessDenied' } as const;
  const unread = { state: 'notAsked', why: 'no flag' } as const;
  const report = reportOf({
    at,
    version: '1',
    cluster: 'c',
    records: failed,
    certificates: failed,
    cas: failed,
    requests: unread,
    nodes: unread,
    trust: unread,
  });
  expect(report).not.toHaveProperty('nodes');
  expect(report).not.toHaveProperty('machines');
  expect(report.parts.map(({ name, state, why }) => `${name} ${state} ${why}`)).toEqual([
    'records failed AccessDenied',
    'certificates failed AccessDenied',
    'cas failed AccessDenied',
    'requests notAsked no flag',
    'nodes notAsked no flag',
    'trust notAsked no flag',
  ]);
  expect(codes(report)).toEqual(['watch NotRead', 'watch NotRead', 'watch NotRead']);
  const nodesOnly = reportOf({
    ...report,
    at,
    certificates: failed,
    cas: failed,
    requests: unread,
    trust: unread,
    records: read(records),
    nodes: read(['n1']),
    version: '1',
    cluster: 'c',
  });
  expect(nodesOnly.fleet).toEqual([{ node: 'n1', standing: 'unread', inCluster: true, certificates: [] }]);
});

test.each([0, 1, 5_000])('%i nodes', async (count) => {
  const report = reportOf(await sampleFacts(count, at));
  expect(report.fleet.length).toBe(count);
  expect(new Set(report.fleet.flatMap(({ certificates }) => certificates.map(({ signerName }) => signerName)))).toEqual(
    new Set(count === 0 ? [] : [client, serving]),
  );
});
