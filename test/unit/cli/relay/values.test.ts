/** `countersign relay values` over the outputs that synthesised stacks have. That helm accepts them: test/suites/control-plane/chart. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import type { StackPlace } from '../../../../cli/runtime/io.ts';
import { clustersOfEachWay, outputsOf } from '../../../harness/stack/stack-outputs.ts';
import { synthesise } from '../../lib/synthesis.ts';
import { run } from '../run.ts';

const files = { 'countersign.yaml': clustersOfEachWay };
const synthesis = synthesise(clustersOfEachWay);
const asked: StackPlace[] = [];
const world = {
  stackOutputs: async (place: StackPlace) => {
    asked.push(place);
    return outputsOf(synthesis, place.cluster);
  },
};
const values = (...argv: readonly string[]) => run(['relay', 'values', ...argv], { files, world });
const [host, account] = ['abcde12345.execute-api.eu-central-1.amazonaws.com', '999900001111'];

test('of a cluster for a role: its endpoint, its caller role, the role of the relay, the signers', async () => {
  const { code, out, err } = await values(
    '--cluster',
    'role',
    '--image',
    `r.example.com:5000/relay@sha256:${'0'.repeat(64)}`,
  );
  expect([code, err]).toEqual([0, '']);
  expect(parse(out)).toEqual({
    image: { repository: 'r.example.com:5000/relay', digest: `sha256:${'0'.repeat(64)}` },
    endpoint: { url: `https://${host}/v1/clusters/role`, cluster: 'role' },
    auth: {
      method: 'aws',
      aws: {
        callerRoleArn: `arn:aws:iam::${account}:role/countersign-role-caller`,
        region: 'eu-central-1',
        credentials: 'webIdentity',
        roleArn: 'arn:aws:iam::444455556666:role/prod-watch-relay',
      },
    },
    signerNames: ['kubernetes.io/kube-apiserver-client-kubelet', 'k8s.example.com/web'],
  });
  expect(out).toContain(
    '# helm upgrade --install countersign-watch-relay deploy/chart -n countersign-system -f relay-values.yaml\n',
  );
  expect(asked.at(-1)).toEqual({ cluster: 'role', region: 'eu-central-1' });
});

test('of a cluster whose relay approves: the whole file, and the URL of attest', async () => {
  const { out } = await values('--cluster', 'url', '--credentials', 'instanceRole');
  expect(parse(out)).toMatchObject({
    endpoint: { attestUrl: 'https://fghij67890.lambda-url.eu-central-1.on.aws/v1/clusters/url' },
    auth: { aws: { credentials: 'instanceRole' } },
    hostNetwork: true,
    nodeSelector: { 'node-role.kubernetes.io/control-plane': '' },
    configuration: clustersOfEachWay,
  });
  expect(parse(out)).not.toHaveProperty('signerNames');
  expect(out).toContain('# Add your image');
});

test('with machines: clusterApi the relay gets its rights on Machines', async () => {
  const text = clustersOfEachWay.replace(
    '      aws:\n        accounts',
    '      machines: clusterApi\n      aws:\n        accounts',
  );
  const argv = ['relay', 'values', '--cluster', 'url', '--credentials', 'podIdentity'];
  const { out } = await run(argv, { files: { 'countersign.yaml': text }, world });
  expect(parse(out)).toMatchObject({ clusterApi: { enabled: true }, configuration: text });
  expect(parse((await run(argv, { files, world })).out)).not.toHaveProperty('clusterApi');
});

test('of a cluster for tokens: their audience, and the account that the endpoint admits', async () => {
  const { out } = await values('--cluster', 'token', '-o', 'json');
  expect(JSON.parse(out)).toEqual({
    endpoint: { url: 'https://klmno12345.execute-api.eu-central-1.amazonaws.com/v1/clusters/token', cluster: 'token' },
    auth: { method: 'token', token: { audience: 'countersign.token.example.com' } },
    serviceAccount: { name: 'signer-relay' },
    signerNames: ['kubernetes.io/kubelet-serving'],
  });
  expect((await values('--cluster', 'token')).out).toContain('deploy/chart -n pki ');
});

test.each([
  ['aws', { method: 'aws' }],
  ['token', { method: 'token' }],
])('of a cluster for both, as --auth %s says', async (auth, expected) => {
  const { out } = await values('--cluster', 'both', '--auth', auth);
  expect(parse(out)).toMatchObject({ auth: expected });
  expect(parse(out)).not.toHaveProperty('serviceAccount');
});

test('without a file the signers are the chart’s', async () => {
  const argv = ['relay', 'values', '--cluster', 'role', '--credentials', 'podIdentity'];
  const { code, out } = await run(argv, { world });
  expect(code).toBe(0);
  expect(Object.keys(parse(out) as object)).toEqual(['endpoint', 'auth']);
  expect(out).toContain('--config names the file');
  expect(asked.at(-1)).toEqual({ cluster: 'role', region: undefined });
});

test.each<[string, readonly string[], number, string]>([
  ['two endpoints', ['--cluster', 'both'], 2, '--auth aws or --auth token'],
  ['an endpoint that it does not have', ['--cluster', 'role', '--auth', 'token'], 3, 'no output JwtSignUrl'],
  ['two roles', ['--cluster', 'url'], 2, 'one of arn:aws:iam::444455556666:role/one, arn'],
  [
    'a role that no principal is',
    ['--cluster', 'role', '--role-arn', 'arn:aws:iam::444455556666:role/x'],
    1,
    'does not name arn',
  ],
  [
    'a role for Pod Identity',
    ['--cluster', 'role', '--credentials', 'podIdentity', '--role-arn', 'arn:aws:iam::444455556666:role/x'],
    2,
    'is for --credentials webIdentity',
  ],
  ['what is no ARN', ['--cluster', 'role', '--role-arn', 'relay'], 2, 'the ARN of a role'],
  ['what is no image', ['--cluster', 'role', '--image', 'a b'], 2, 'REPOSITORY@sha256'],
  [
    'a cluster that the file does not have',
    ['--cluster', 'other', '--config', 'countersign.yaml'],
    4,
    'has no cluster other',
  ],
])('refuses %s, and says what to do', async (_, argv, code, text) => {
  const ran = await values(...argv);
  expect([ran.code, ran.out]).toEqual([code, '']);
  expect(ran.err).toContain(text);
});

test('a stack that does not exist ends it', async () => {
  const gone = new CommandFailure(
    exitCodes.notFound,
    'there is no stack countersign-role',
    'npm run cdk -- deploy creates it',
  );
  const ran = await run(['relay', 'values', '--cluster', 'role'], {
    files,
    world: { stackOutputs: () => Promise.reject(gone) },
  });
  expect(ran).toMatchObject({ code: 4, out: '' });
  expect(ran.err).toContain('npm run cdk -- deploy creates it');
});
