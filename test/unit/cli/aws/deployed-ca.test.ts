import { expect, test } from 'vitest';
import { temporaryCa } from '../../../../adapters/embedded/authority.ts';
import type { FunctionCall } from '../../../../cli/runtime/io.ts';
import { caConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { now, run } from '../run.ts';

const checked = caConfiguration('nodes', { subject: { commonName: 'prod nodes' } });
if (!checked.ok) throw new Error('the CA of this test is wrong');
const { certificate } = await temporaryCa(checked.value, {
  now,
  randomBytes: (count) => new Uint8Array(count).fill(7),
});
const keyId = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const made = {
  ok: true,
  name: 'nodes',
  created: true,
  certificatePem: toPem('CERTIFICATE', certificate),
  keyId,
  signatureAlgorithm: 'ECDSA_SHA_256',
};

/** The command line, with a function that gives this, and what it was asked. */
async function ask(argv: string, ca: object, cluster: unknown = 'prod', environment: Record<string, string> = {}) {
  const calls: FunctionCall[] = [];
  const callFunction = async (call: FunctionCall) => {
    calls.push(call);
    return { cluster, cas: [ca] };
  };
  return { ...(await run(argv.split(' '), { environment, world: { callFunction } })), calls };
}

test('init invokes the cluster’s own function, and shows the new CA', async () => {
  const ran = await ask('ca init --cluster prod --name nodes -o json', made);
  expect([ran.code, ran.err]).toEqual([0, '']);
  expect(ran.calls).toEqual([{ functionName: 'countersign-prod-ca', request: { action: 'init', ca: 'nodes' } }]);
  expect(JSON.parse(ran.out)).toMatchObject({ name: 'nodes', subject: 'CN=prod nodes', key: 'P-256', keyId });
});

test('show prints the certificate unchanged; the cluster may come from the environment, the function from a flag', async () => {
  const ran = await ask('ca show --name nodes --function f --region eu-west-1 -o pem', made, 'prod', {
    COUNTERSIGN_CLUSTER: 'prod',
  });
  expect([ran.code, ran.out]).toEqual([0, made.certificatePem]);
  expect(ran.calls).toEqual([{ functionName: 'f', region: 'eu-west-1', request: { action: 'show', ca: 'nodes' } }]);
});

test.each([
  [
    'init',
    'a CA that was there',
    { ...made, created: false },
    6,
    /left as it is\n.*ca show --cluster prod --name nodes/,
  ],
  [
    'show',
    'no CA yet',
    { ok: false, name: 'nodes', why: 'Missing', message: 'there is no CA nodes yet' },
    4,
    /ca init/,
  ],
  ['show', 'an unknown name', { ok: false, name: 'nodes', why: 'UnknownCa', message: 'it has web' }, 4, /it has web/],
  [
    'init',
    'a CA of another key',
    { ok: false, name: 'nodes', why: 'OtherKey', message: 'another key' },
    3,
    /another key/,
  ],
  ['show', 'another CA', { ...made, name: 'web' }, 3, /does not answer like the ca function/],
])('%s finds %s', async (action, _, ca, code, message) => {
  const ran = await ask(`ca ${action} --cluster prod --name nodes`, ca);
  expect([ran.code, ran.out]).toEqual([code, '']);
  expect(ran.err).toMatch(message);
});

test('the answer of another cluster’s function is refused', async () => {
  const ran = await ask('ca show --cluster prod --name nodes --function f', made, 'test');
  expect(ran.code).toBe(3);
  expect(ran.err).toMatch(/f is of cluster test, not prod/);
});

test.each([undefined, 7, {}])('nor is one that answers something else: %j', async (cluster) => {
  expect((await ask('ca show --cluster prod --name nodes', made, cluster ?? null)).code).toBe(3);
});

test.each(['--key-spec P-384', '--subject CN=x', '--config countersign.yaml', '--validity 1d'])(
  'the deployment defines the CA: %s is refused',
  async (flags) => {
    const ran = await ask(`ca init --cluster prod --name nodes ${flags}`, made);
    expect([ran.code, ran.calls]).toEqual([2, []]);
    expect(ran.err).toContain(`leave out ${flags.split(' ')[0]}`);
  },
);
