/** What `token reconcile` does when the cluster it asks is the wrong one, or answers for some Machines only. */
import { describe, expect, test } from 'vitest';
import { clientsOver } from '../../../../adapters/kubernetes/clients.ts';
import type { HttpCall, HttpResult } from '../../../../adapters/kubernetes/transport.ts';
import { reconcileTokens, reconciledText } from '../../../../cli/cluster/token-rotation.ts';
import { secretOfToken } from '../../../../core/kubernetes/bootstrap-token.ts';
import type { TokenOwner } from '../../../../core/kubernetes/bootstrap-token.ts';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import { now } from '../run.ts';

type Found = JsonObject | 'gone' | 'forbidden' | 'silent';

/** Tokens for these Machines, and a cluster that answers so for each; what was deleted or replaced. */
async function reconcile(machines: Readonly<Record<string, Found>>, owner: Partial<TokenOwner> = {}) {
  const changed: string[] = [];
  const asked: string[] = [];
  const secrets = Object.keys(machines).map((name, index) => {
    const token = { id: `tok00${index}`, secret: '0123456789abcdef' };
    const made = { kind: 'machine', namespace: 'fleet', name, ...owner } as const;
    const secret = secretOfToken({
      token,
      description: '',
      expires: now + 60_000,
      usages: [],
      groups: [],
      owner: made,
    });
    return { ...secret, metadata: { ...(secret['metadata'] as object), uid: `uid-${index}`, resourceVersion: '1' } };
  });
  const answer = (status: number, object: object): HttpResult => ({ status, text: JSON.stringify(object) });
  const lookUp = (path: string): HttpResult => {
    if (path === '/apis')
      return answer(200, { groups: [{ name: 'cluster.x-k8s.io', versions: [], preferredVersion: { version: 'v1' } }] });
    if (path === '/apis/cluster.x-k8s.io/v1')
      return answer(200, { resources: [{ name: 'machines' }, { name: 'machinepools' }] });
    if (path.endsWith('/secrets')) return answer(200, { items: secrets });
    const found = machines[decodeURIComponent(path.split('/').at(-1) ?? '')];
    if (found === 'silent') throw new Error('no answer in 30 s');
    if (found === 'forbidden') return answer(403, { message: 'no' });
    return found === 'gone' || found === undefined ? answer(404, {}) : answer(200, found);
  };
  const call = async ({ method, path }: HttpCall): Promise<HttpResult> => {
    if (method === 'GET') {
      asked.push(path);
      return lookUp(path);
    }
    changed.push(path.split('/').at(-1) ?? '');
    return answer(200, {});
  };
  const cluster = clientsOver(call, new AbortController().signal);
  const done = await reconcileTokens(cluster, cluster, { ttlSeconds: 3_600, dryRun: false, now });
  return { ...done, changed, asked, outcomes: done.tokens.map((token) => token.done) };
}

describe('finding 22: the wrong management cluster', () => {
  test('without any of the Machines: nothing is deleted, exit code 4', async () => {
    const { exit, changed, tokens, outcomes } = await reconcile({ a: 'gone', b: 'gone' });
    expect({ exit, changed, outcomes }).toEqual({ exit: 4, changed: [], outcomes: ['left', 'left'] });
    expect(tokens[0]?.why).toContain('is it the right management cluster?');
  });

  test('one existing Machine shows that it is the right one', async () => {
    const { exit, outcomes } = await reconcile({ a: 'gone', b: {} });
    expect({ exit, outcomes }).toEqual({ exit: 0, outcomes: ['deleted', 'extended'] });
  });

  test('a failed lookup does not', async () => {
    const { exit, changed, outcomes } = await reconcile({ a: 'gone', b: 'forbidden' });
    expect({ exit, changed, outcomes }).toEqual({ exit: 4, changed: [], outcomes: ['left', 'failed'] });
  });
});

describe('finding 22: one lookup that fails', () => {
  test.each<[Found, number, string]>([
    ['silent', 5, 'no answer in 30 s'],
    ['forbidden', 3, 'machine fleet/b: HTTP 403: no'],
  ])('%s: the other tokens go on', async (found, code, words) => {
    const done = await reconcile({ a: {}, b: found, c: 'gone' });
    expect(done).toMatchObject({ exit: code, outcomes: ['extended', 'failed', 'deleted'] });
    expect(done.changed).toEqual(['bootstrap-token-tok000', 'bootstrap-token-tok002']);
    expect(reconciledText(done)).toContain(`tok001 (machine fleet/b): failed: ${words}\n`);
  });
});

test('an annotation cannot select another object', async () => {
  const { asked } = await reconcile({ 'x/../../../namespaces/default/secrets/y': {} }, { namespace: 'a/b' });
  expect(asked.at(-1)).toBe(
    '/apis/cluster.x-k8s.io/v1/namespaces/a%2Fb/machines/x%2F..%2F..%2F..%2Fnamespaces%2Fdefault%2Fsecrets%2Fy',
  );
  expect(await reconcile({ a: {} }, { namespace: '..' })).toMatchObject({ exit: 1, outcomes: ['failed'] });
});
