/** A request that was issued, with the records and the log lines that the real sign handler writes, and an API server of the test. */
import { onTestFinished } from 'vitest';
import type { LogSearch, OpenTrace, TracePlace } from '../../../../cli/runtime/io.ts';
import type { AuditItem, Verdict } from '../../../../core/ports/attestation-store.ts';
import { csrFixture, eventFixture, startStack } from '../../lambdas/sign/stack.ts';
import { run } from '../run.ts';
import { startFakeCluster } from './fake-cluster.ts';
import { holds } from './fake-logs.ts';

export const minute = 60_000;
/** The test's CA is valid now. */
export const now = Math.floor(Date.now() / 1_000) * 1_000;
export const created = now - 10 * minute;
export const at = (instant: number): string => new Date(instant).toISOString();
export const seconds = (instant: number): string => at(instant).replace('.000Z', 'Z');

/** A request that was tried twice and issued: the lines and the record are those of the real handler. */
export async function issuedWorld() {
  let tries = 0;
  const stack = await startStack({
    wrapSigner: (signer) => ({
      ...signer,
      async sign(tbs) {
        tries += 1;
        if (tries === 1)
          throw Object.assign(new Error('KMS did not answer'), { $metadata: { requestId: 'kms-request-1' } });
        return { ...(await signer.sign(tbs)), requestId: `kms-request-${tries}` };
      },
    }),
  });
  onTestFinished(stack.close);
  const csr = csrFixture({ metadata: { creationTimestamp: seconds(created) } });
  const { uid } = csr.metadata as unknown as { uid: string };
  const lines: { at: number; of: 'sign' | 'attest'; text: string }[] = [];
  const call = async (time: number, awsRequestId: string) => {
    stack.clock.now = time;
    const event = eventFixture({
      method: 'POST',
      path: '/v1/clusters/demo/sign',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(csr),
    });
    const answer = await stack.handler(event, { invokedFunctionArn: 'arn', awsRequestId });
    const entry = { time: at(time), ...stack.log.at(-1) };
    lines.push({ at: time, of: 'sign', text: JSON.stringify(entry) });
    return answer;
  };
  await call(created + minute, 'invocation-1');
  const answer = await call(created + 2 * minute, 'invocation-2');
  const { status } = JSON.parse(answer.body) as { status: { certificate: string } };

  const cluster = await startFakeCluster();
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message: 'because',
    lastUpdateTime: seconds(created + minute / 2),
  };
  cluster.requests.set('node-csr-1', {
    ...csr,
    metadata: {
      ...csr.metadata,
      managedFields: [
        {
          manager: 'countersign-watch-relay',
          subresource: 'status',
          time: seconds(created + 3 * minute),
          fieldsV1: { 'f:status': { 'f:certificate': {} } },
        },
      ],
    },
    status: { conditions: [approved], certificate: status.certificate },
  });
  const relayLine = (time: number, fields: object) => JSON.stringify({ level: 'info', time: at(time), ...fields });
  cluster.logs.set(
    'countersign-system/relay-0',
    [
      relayLine(created + minute, { uid: 'another', name: 'x', msg: 'request done' }),
      relayLine(created + minute + 1, {
        uid,
        name: 'node-csr-1',
        cause: 'EndpointFailing',
        detail: 'Unavailable',
        msg: 'request tried again',
      }),
      'not JSON, with the UID in it: ' + uid,
      relayLine(created + 3 * minute, { uid, name: 'node-csr-1', end: 'issued', msg: 'request done' }),
    ].join('\n'),
  );
  cluster.events.push({
    involvedObject: { uid },
    eventTime: at(created + 2.5 * minute),
    reason: 'SigningDelayed',
    message: 'Not signed yet',
  });
  const sources = {
    lines,
    verdicts: new Map<string, Verdict>(),
    audit: [] as AuditItem[],
    searches: [] as LogSearch[],
  };
  const open: OpenTrace = {
    findRecord: (id) => stack.ledger.find(id),
    findSerial: async (serial) => ((await stack.ledger.find(uid))?.serial === serial ? uid : undefined),
    listByExpiry: (range) => stack.reads.listByExpiry(range),
    output: async () => undefined,
    findVerdict: async (id) => sources.verdicts.get(id),
    findRevocation: async () => undefined,
    async *listRevocations() {},
    async *listSignatures() {},
    async *listAudit() {
      yield* sources.audit;
    },
    async searchLog(search) {
      sources.searches.push(search);
      const { of, pattern, from, to } = search;
      return {
        lines: lines.filter((line) => line.of === of && line.at >= from && line.at <= to && holds(pattern, line.text)),
      };
    },
    close() {},
  };
  const places: TracePlace[] = [];
  const world = (change: Partial<OpenTrace> = {}) => ({
    now: () => now,
    openTrace: async (place: TracePlace) => {
      places.push(place);
      return { ...open, ...change };
    },
  });
  const trace = (argv: readonly string[], change?: Partial<OpenTrace>) =>
    run(['trace', ...argv, '--kubeconfig', cluster.kubeconfig], { world: world(change) });
  return { stack, csr, uid, cluster, sources, lines, open, places, trace, world, certificate: status.certificate };
}
