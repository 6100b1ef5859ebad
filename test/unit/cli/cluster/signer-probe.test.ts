/** What the probe concludes from each answer to its request, and that it always deletes the request. */
import { expect, test } from 'vitest';
import { clientsOver } from '../../../../adapters/kubernetes/clients.ts';
import type { HttpCall } from '../../../../adapters/kubernetes/transport.ts';
import { probeSigner } from '../../../../cli/cluster/signer-probe.ts';

/** A cluster whose request has this status when it is read; the calls that it received, and how long the probe waited. */
async function probe(status: object, approval = { status: 200, text: '{}' }) {
  const calls: HttpCall[] = [];
  const call = async (sent: HttpCall) => {
    calls.push(sent);
    if (sent.path.endsWith('/approval')) return approval;
    const object = { ...(sent.body as object | undefined), metadata: { name: 'p', uid: 'u', resourceVersion: '1' } };
    return { status: 200, text: JSON.stringify(sent.method === 'GET' ? { ...object, status } : object) };
  };
  let waited = 0;
  const sleep = async (milliseconds: number): Promise<void> => void (waited += milliseconds);
  const seen = await probeSigner(clientsOver(call, new AbortController().signal), 'x', sleep);
  return { ...seen, calls, methods: calls.map(({ method }) => method), waited };
}
const failed = (message: string) => ({ conditions: [{ type: 'Failed', status: 'True', message }] });

test.each<[string, object, string, RegExp]>([
  ['a certificate', { certificate: 'TFM=' }, 'on', /other than the relay answered .*: it was signed$/],
  ['the in-tree signer', failed('subject organization is not system:nodes'), 'on', /: subject organization is not/],
  [
    'the relay, which names every rule',
    failed('subject organization is not system:nodes; subject common name does not begin with system:node:'),
    'not seen',
    /the relay answered/,
  ],
  ['no answer', { conditions: [{ type: 'Approved', status: 'True' }] }, 'off', /no signer answered .* in 10 s$/],
])('%s', async (_, status, state, words) => {
  const { seen, methods, calls, ...probed } = await probe(status);
  expect(probed).toEqual({ state, waited: state === 'off' ? 10_000 : 250 });
  expect(seen).toEqual([expect.stringMatching(words)]);
  expect([...methods.slice(0, 3), methods.at(-1)]).toEqual(['POST', 'PUT', 'GET', 'DELETE']);
  expect(calls[1]?.body).toMatchObject({
    metadata: { uid: 'u', resourceVersion: '1' },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'CountersignProbe' }] },
  });
});

test('an approver that is faster makes the probe show nothing', async () => {
  const { state, seen, methods } = await probe({}, { status: 409, text: '{"message":"modified"}' });
  expect({ state, methods }).toEqual({ state: 'not seen', methods: ['POST', 'PUT', 'DELETE'] });
  expect(seen).toEqual(['the probe was answered before it could be approved: HTTP 409: modified']);
});

test('a temporary failure ends the probe, and the request is deleted all the same', async () => {
  const calls: string[] = [];
  const call = async ({ method, body }: HttpCall) => {
    calls.push(method);
    return method === 'POST' ? { status: 201, text: JSON.stringify(body) } : { status: 500, text: '{}' };
  };
  const clients = clientsOver(call, new AbortController().signal);
  await expect(probeSigner(clients, 'x', async () => {})).rejects.toThrow('HTTP 500');
  expect(calls).toEqual(['POST', 'PUT', 'DELETE']);
});
