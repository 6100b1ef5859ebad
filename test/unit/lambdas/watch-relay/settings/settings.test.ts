import { expect, test } from 'vitest';
import {
  defaultSignerNames,
  endpointConnections,
  parseSettings,
} from '../../../../../lambdas/watch-relay/settings/settings.ts';

const inCluster = { KUBERNETES_SERVICE_HOST: '10.0.0.1' };

function settings(argv: readonly string[], environment: Record<string, string> = inCluster) {
  const parsed = parseSettings(argv, environment);
  if (parsed.kind !== 'settings') throw new Error(JSON.stringify(parsed));
  return parsed.settings;
}

test('the least one must say, and what the rest then is', () => {
  expect(settings(['--url', 'https://sign.example.com', '--cluster', 'prod'])).toEqual({
    cluster: 'prod',
    endpointUrl: 'https://sign.example.com/v1/clusters/prod',
    caller: { kind: 'anonymous' },
    login: { kind: 'inCluster' },
    signers: { kind: 'flags', names: [...defaultSignerNames], inFlightPerRequester: 24 },
    concurrency: 32,
    drainSeconds: 20,
    probes: { port: 8080 },
    clusterApi: { namesSigners: false },
    logLevel: 'info',
  });
});

test('everything one can say', () => {
  const argv = [
    ['--url', 'http://127.0.0.1:8400/stage/v1/clusters/demo/'],
    ['--endpoint-ca', 'ca.pem'],
    ['--token-file', 'token'],
    ['--kubeconfig', 'k', '--context', 'c'],
    ['--signer-name', 'k8s.example.com/web', '--signer-name=example.com/x'],
    ['--in-flight-per-requester', '3'],
    ['--concurrency', '1', '--drain-seconds', '0'],
    ['--leader-elect', '--lease-namespace', 'ns', '--lease-name', 'l'],
    ['--metrics-address', '[::1]:0', '--log-level', 'debug'],
    ['--trust-config-map', 'kubernetes.io/kubelet-serving=monitoring/ca.kubelets', '--cluster-trust-bundles', 'live'],
    ['--trust-config-map', 'k8s.example.com/web=monitoring/web'],
    ['--webhook-proxy', ':8443', '--webhook-cert', 'tls.crt', '--webhook-key', 'tls.key'],
    ['--webhook-token-file', 'w', '--webhook-client-ca', 'ca.crt', '--webhook-client-subject', 'O=x,CN=y'],
  ].flat();
  expect(settings(argv)).toEqual({
    cluster: 'demo',
    endpointUrl: 'http://127.0.0.1:8400/stage/v1/clusters/demo',
    endpointCa: 'ca.pem',
    caller: { kind: 'tokenFile', path: 'token' },
    login: { kind: 'kubeconfig', path: 'k', context: 'c' },
    signers: { kind: 'flags', names: ['k8s.example.com/web', 'example.com/x'], inFlightPerRequester: 3 },
    concurrency: 1,
    drainSeconds: 0,
    lease: { namespace: 'ns', name: 'l' },
    probes: { host: '::1', port: 0 },
    clusterApi: { namesSigners: false },
    trust: {
      configMaps: [
        { signerName: 'kubernetes.io/kubelet-serving', namespace: 'monitoring', name: 'ca.kubelets' },
        { signerName: 'k8s.example.com/web', namespace: 'monitoring', name: 'web' },
      ],
      clusterTrustBundleSuffix: 'live',
    },
    webhook: {
      address: { port: 8443 },
      certFile: 'tls.crt',
      keyFile: 'tls.key',
      tokenFile: 'w',
      client: { caFile: 'ca.crt', subject: 'O=x,CN=y' },
    },
    logLevel: 'debug',
  });
});

test('the environment speaks where no flag does', () => {
  const environment = {
    ...inCluster,
    COUNTERSIGN_URL: 'https://a.example',
    COUNTERSIGN_CLUSTER: 'blue',
    COUNTERSIGN_LOG_LEVEL: 'warn',
  };
  expect(settings([], environment)).toMatchObject({
    endpointUrl: 'https://a.example/v1/clusters/blue',
    logLevel: 'warn',
  });
  expect(settings(['--cluster', 'red', '--log-level', 'error'], environment)).toMatchObject({
    endpointUrl: 'https://a.example/v1/clusters/red',
    logLevel: 'error',
  });
  expect(settings(['--leader-elect'], environment).lease).toEqual({
    namespace: 'countersign-system',
    name: 'countersign-watch-relay',
  });
});

const url = ['--url', 'https://a.example', '--cluster', 'c'];
const role = 'arn:aws:iam::111122223333:role/countersign-prod-caller';

test('the caller role comes from the flag or the environment, its region from where AWS puts it', () => {
  expect(settings([...url, '--caller-role', role]).caller).toEqual({ kind: 'role', arn: role });
  const environment = { ...inCluster, COUNTERSIGN_CALLER_ROLE: role, AWS_DEFAULT_REGION: 'eu-west-1', POD_NAME: 'p-1' };
  expect(settings(url, environment)).toMatchObject({
    caller: { kind: 'role', arn: role, region: 'eu-west-1' },
    podName: 'p-1',
  });
  expect(settings(url, { ...environment, AWS_REGION: 'eu-west-3' }).caller).toMatchObject({ region: 'eu-west-3' });
  expect(settings(url, { ...environment, COUNTERSIGN_CALLER_ROLE: '' }).caller).toEqual({ kind: 'anonymous' });
  const gov = 'arn:aws-us-gov:iam::111122223333:role/path/prod-caller';
  expect(settings([...url, '--caller-role', gov], environment).caller).toMatchObject({ arn: gov });
});

test.each([
  'https://a.example',
  'http://127.0.0.1:1',
  'http://[::1]:1',
  'http://localhost',
  'http://x.execute-api.localhost:1',
])('credentials may go to %s', (to) => {
  expect(settings(['--url', to, '--cluster', 'c', '--token-file', 't']).caller).toMatchObject({ kind: 'tokenFile' });
});

test('a token and a role exclude each other, also when one comes from the environment', () => {
  const parsed = parseSettings([...url, '--token-file', 't'], { ...inCluster, COUNTERSIGN_CALLER_ROLE: role });
  expect(parsed).toMatchObject({ kind: 'wrong', message: expect.stringMatching(/cannot be used with/) as unknown });
});

test('the file says which signers there are, named by flag or environment', () => {
  expect(settings([...url, '--config', 'c.yaml']).signers).toEqual({ kind: 'file', path: 'c.yaml' });
  const environment = { ...inCluster, COUNTERSIGN_CONFIG: 'e.yaml' };
  expect(settings(url, environment).signers).toEqual({ kind: 'file', path: 'e.yaml' });
  expect(settings([...url, '--config', 'c.yaml'], environment).signers).toEqual({ kind: 'file', path: 'c.yaml' });
});

const webhook = [...url, '--webhook-proxy', ':8443', '--webhook-cert', 'c', '--webhook-key', 'k'];
test('Machines may be in another cluster, and the InfraCluster may name the signers', () => {
  const flags = [
    '--config',
    'c.yaml',
    '--machines-kubeconfig',
    '/etc/management/kubeconfig',
    '--infra-cluster-signers',
  ];
  expect(settings([...url, ...flags], inCluster)).toMatchObject({
    clusterApi: { kubeconfig: '/etc/management/kubeconfig', namesSigners: true },
  });
});

test('a webhook client may be known by a token or by a certificate', () => {
  expect(settings([...webhook, '--webhook-token-file', 't']).webhook).toMatchObject({ tokenFile: 't' });
  const client = ['--webhook-client-ca', 'ca', '--webhook-client-subject', 'CN=gcp-controller-manager'];
  expect(settings([...webhook, ...client]).webhook).toMatchObject({
    client: { caFile: 'ca', subject: 'CN=gcp-controller-manager' },
  });
});

test('requests of webhook clients need not wait for a connection of the others', () => {
  expect(endpointConnections(settings([...url, '--concurrency', '4']))).toBe(4);
  expect(endpointConnections(settings([...webhook, '--webhook-token-file', 't', '--concurrency', '4']))).toBe(8);
});

test('attest may be elsewhere, for the same cluster', () => {
  expect(settings(url).attestUrl).toBeUndefined();
  expect(settings([...url, '--attest-url', 'https://b.example/v1/clusters/c/']).attestUrl).toBe(
    'https://b.example/v1/clusters/c',
  );
  expect(settings(url, { ...inCluster, COUNTERSIGN_ATTEST_URL: 'https://b.example' }).attestUrl).toBe(
    'https://b.example/v1/clusters/c',
  );
  expect(settings(url, { ...inCluster, COUNTERSIGN_ATTEST_URL: '' }).attestUrl).toBeUndefined();
});

const plain = ['--url', 'http://a.example', '--cluster', 'c'];
test.each<[readonly string[], RegExp]>([
  [[], /--url or COUNTERSIGN_URL/],
  [['--url', 'nonsense'], /not a URL/],
  [['--url', 'ftp://a.example/v1/clusters/c'], /http/],
  [['--url', 'https://user:hunter2@a.example/v1/clusters/c'], /credentials/],
  [['--url', 'https://a.example/v1/clusters/c?key=1'], /query/],
  [['--url', 'https://a.example'], /--cluster/],
  [['--url', 'https://a.example', '--cluster', '../x'], /cluster \.\.\/x/],
  [['--url', 'https://a.example/v1/clusters/a', '--cluster', 'b'], /names cluster a/],
  [[...url, '--attest-url', 'https://b.example/v1/clusters/b'], /--attest-url names cluster b/],
  [[...url, '--attest-url', 'http://b.example'], /--attest-url: must be https/],
  [['--url', 'http://127.0.0.1', '--cluster', 'c', '--attest-url', 'http://b.example'], /--attest-url: must be https/],
  [[...url, '--attest-url', 'https://user:secret@b.example'], /--attest-url: must not carry credentials/],
  [[...url, '--concurrency', '0'], /--concurrency .*'0' is invalid/],
  [[...url, '--concurrency', '257'], /--concurrency .*'257' is invalid/],
  [[...url, '--concurrency', '1e2'], /--concurrency/],
  [[...url, '--drain-seconds', '-1'], /drain-seconds/],
  [[...url, '--signer-name', 'web'], /--signer-name .*'web' is invalid/],
  [[...url, '--infra-cluster-signers'], /--infra-cluster-signers needs --config/],
  [[...url, '--machines-kubeconfig', 'k'], /--machines-kubeconfig needs --config/],
  [[...url, '--config', 'c', '--machines-kubeconfig='], /--machines-kubeconfig .*names no file/],
  [[...url, '--cluster-trust-bundles', 'a:b'], /--cluster-trust-bundles .*'a:b' is invalid/],
  [[...url, '--in-flight-per-requester', '0'], /--in-flight-per-requester .*'0' is invalid/],
  [[...url, '--config', ''], /--config .* names no file/],
  [[...url, '--config', 'c.yaml', '--signer-name', 'a.b/c'], /--config .*cannot be used with .*--signer-name/],
  [
    [...url, '--config', 'c.yaml', '--in-flight-per-requester', '3'],
    /--config .*cannot be used with .*--in-flight-per-requester/,
  ],
  [[...url, '--metrics-address', '8080'], /--metrics-address .*'8080' is invalid/],
  [[...url, '--metrics-address', ':65536'], /--metrics-address/],
  [[...url, '--log-level', 'loud'], /loud/],
  [[...url, '--lease-name', 'x'], /--leader-elect/],
  [[...url, '--context', 'x'], /--kubeconfig/],
  [[...url, '--token-file', 't', '--caller-role', role], /--caller-role .*cannot be used with .*--token-file/],
  [[...url, '--token-file', ''], /--token-file/],
  [[...url, '--caller-role', 'prod-caller'], /caller role prod-caller/],
  [[...url, '--caller-role', 'arn:aws:iam::111122223333:user/x'], /caller role arn/],
  [[...plain, '--token-file', 't'], /must be https/],
  [[...plain, '--caller-role', role], /must be https/],
  [['--url', 'http://127.0.0.1.a.example', '--cluster', 'c', '--token-file', 't'], /must be https/],
  [['--url', 'http://localhost.a.example', '--cluster', 'c', '--token-file', 't'], /must be https/],
  [webhook, /serves authenticated callers only/],
  [[...webhook, '--webhook-client-ca', 'c'], /need each other/],
  [[...webhook, '--webhook-token-file', 't', '--webhook-client-subject', 'CN=x'], /need each other/],
  [[...webhook, '--webhook-token-file', ''], /--webhook-token-file .*names no file/],
  [[...webhook.slice(0, -2), '--webhook-token-file', 't'], /--webhook-cert and --webhook-key/],
  [[...webhook, '--webhook-token-file', 't', '--webhook-proxy', '8443'], /--webhook-proxy .*'8443' is invalid/],
  [[...url, '--webhook-token-file', 't'], /--webhook-token-file needs --webhook-proxy/],
  [[...url, '--unknown'], /--unknown/],
  [[...url, 'stray'], /stray/],
])('%j is wrong, and the message says what', (argv, message) => {
  const parsed = parseSettings(argv, inCluster);
  expect(parsed.kind).toBe('wrong');
  if (parsed.kind !== 'wrong') return;
  expect(parsed.message).toMatch(message);
  expect(parsed.message).not.toContain('hunter2');
});

test('outside a cluster a kubeconfig is needed', () => {
  expect(parseSettings(url, {})).toMatchObject({
    kind: 'wrong',
    message: expect.stringContaining('--kubeconfig') as unknown,
  });
});

test.each([
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  [':8080', { host: '127.0.0.1', port: 8080 }],
  ['[::1]:1', { host: '::1', port: 1 }],
  ['relay-test.pki.svc:8080', { host: 'relay-test.pki.svc', port: 8080 }],
])('--probe %s needs no other flag, and no cluster', (text, target) => {
  expect(parseSettings(['--probe', text], {})).toEqual({ kind: 'probe', target });
  expect(parseSettings(['--probe', 'relay'], {})).toMatchObject({ kind: 'wrong' });
});

test.each([
  [{ HTTPS_PROXY: 'socks5://proxy:1080' }, 'wrong'],
  [{ https_proxy: 'http://proxy:3128' }, 'settings'],
])('the proxy of %o: %s', (environment, kind) => {
  expect(parseSettings(url, { ...inCluster, ...environment }).kind).toBe(kind);
});

test('the help names every option and shows examples that parse', () => {
  const help = parseSettings(['--help'], {});
  if (help.kind !== 'help') throw new Error(help.kind);
  const examples = help.text
    .slice(help.text.indexOf('Examples:'))
    .split('\n')
    .flatMap((line) => /watch-relay (.+)$/.exec(line)?.[1] ?? []);
  expect(examples.length).toBeGreaterThan(2);
  for (const example of examples)
    expect(parseSettings(example.split(' '), inCluster).kind).toBe(
      example.startsWith('--probe') ? 'probe' : 'settings',
    );
});

test.each(['web=a/b', 'a.b/c', 'a.b/c=d', 'a.b/c=D/e', 'a.b/c=d/e_f', 'a.b/*=d/e', 'a.b/c=d/e/f'])(
  '--trust-config-map %s is wrong',
  (place) => {
    expect(parseSettings([...url, '--trust-config-map', place], inCluster)).toMatchObject({
      kind: 'wrong',
      message: expect.stringContaining('It is not of the form domain.tld/signer=namespace/name.') as unknown,
    });
  },
);

test('two signers cannot share a ConfigMap', () => {
  const twice = ['--trust-config-map', 'a.b/c=d/e', '--trust-config-map', 'a.b/x=d/e'];
  expect(parseSettings([...url, ...twice], inCluster)).toMatchObject({
    kind: 'wrong',
    message: expect.stringContaining('ConfigMap d/e is named twice') as unknown,
  });
});
