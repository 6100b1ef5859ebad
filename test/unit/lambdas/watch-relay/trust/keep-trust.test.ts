import { expect, test } from 'vitest';
import { failure, success } from '../../../../../core/outcome/result.ts';
import type { ApiAnswer, JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { ClusterTrustBundleVersion, ObjectCalls } from '../../../../../adapters/kubernetes/trust-objects.ts';
import { keepTrust } from '../../../../../lambdas/watch-relay/trust/keep-trust.ts';
import type { KeptTrust } from '../../../../../lambdas/watch-relay/trust/kept-objects.ts';

const signer = 'kubernetes.io/kubelet-serving';
const mark = 'countersign.dev/trust-bundle-of';
const configMaps: KeptTrust = {
  configMaps: [{ signerName: signer, namespace: 'kube-system', name: 'serving-ca' }],
  clusterTrustBundleSuffix: undefined,
};
const bundles: KeptTrust = { configMaps: [], clusterTrustBundleSuffix: 'live' };

const versionOf = (object: JsonObject): unknown => (object['metadata'] as JsonObject)['resourceVersion'];

/** An API server with optimistic concurrency, an endpoint, and a clock that runs `rounds` rounds. */
function world(answer: () => ReadonlyMap<string, string>) {
  const stored = new Map<string, JsonObject>();
  const lines: string[] = [];
  const counted: string[] = [];
  let revision = 0;
  let alarms = 0;
  let version: ClusterTrustBundleVersion | undefined = 'v1beta1';
  let forbidden = false;
  const put = (key: string, object: JsonObject): ApiAnswer<JsonObject> => {
    const metadata = { ...(object['metadata'] as JsonObject), resourceVersion: String(++revision) };
    stored.set(key, { ...object, metadata });
    return success(stored.get(key) ?? {});
  };
  const refuse = failure({ why: 'Forbidden', message: 'HTTP 403: not allowed' } as const);
  const at = (key: string): ObjectCalls => ({
    get: async () => {
      const object = stored.get(key);
      return forbidden
        ? refuse
        : object === undefined
          ? failure({ why: 'NotFound', message: 'HTTP 404' })
          : success(object);
    },
    create: async (object) => (stored.has(key) ? failure({ why: 'Conflict', message: 'HTTP 409' }) : put(key, object)),
    update: async (object) =>
      versionOf(object) === versionOf(stored.get(key) ?? {})
        ? put(key, object)
        : failure({ why: 'Conflict', message: 'HTTP 409' }),
  });
  const say = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level}: ${message} ${(fields as { detail?: string }).detail ?? ''}`.trim());
  return {
    stored,
    lines,
    counted,
    alarms: () => alarms,
    serve: (which: typeof version) => (version = which),
    forbid: (yes: boolean) => (forbidden = yes),
    run: async (kept: KeptTrust, rounds = 1): Promise<void> => {
      const stop = new AbortController();
      let left = rounds;
      const after = (_: number, then: () => void): (() => void) => {
        left -= 1;
        setImmediate(left === 0 ? () => stop.abort() : then);
        return () => undefined;
      };
      await keepTrust(
        kept,
        [signer],
        {
          source: { read: async () => answer() },
          objects: {
            configMap: (namespace, name) => at(`${namespace}/${name}`),
            clusterTrustBundle: (of, name) => at(`${of} ${name}`),
            clusterTrustBundleVersion: async () => (forbidden ? refuse : success(version)),
          },
          clock: { now: () => 0, monotonic: () => 0, after },
          random: () => 0,
          log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
          metrics: {
            trust: (subject, result) => void counted.push(`${subject} ${result}`),
            trustAlarmed: () => void (alarms += 1),
          },
        },
        stop.signal,
      );
    },
  };
}

const has = (pem: string) => world(() => new Map([[signer, pem]]));
const dataOf = (object: JsonObject | undefined) => object?.['data'];

test('a ConfigMap is made, left alone, put back, and made again', async () => {
  const { run, stored, counted } = has('PEM');
  await run(configMaps);
  const key = 'kube-system/serving-ca';
  const made = stored.get(key);
  expect(made).toMatchObject({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'serving-ca', namespace: 'kube-system', annotations: { [mark]: signer } },
    data: { 'ca.crt': 'PEM' },
  });
  await run(configMaps);
  expect(stored.get(key)).toBe(made);
  for (const edited of [
    { data: { 'ca.crt': 'other' } },
    { data: { 'ca.crt': 'PEM', 'more.crt': 'other' } },
    { binaryData: { 'more.crt': 'AA==' } },
    { data: {} },
  ]) {
    stored.set(key, { ...stored.get(key), ...edited });
    await run(configMaps);
    expect([dataOf(stored.get(key)), stored.get(key)?.['binaryData']]).toEqual([{ 'ca.crt': 'PEM' }, undefined]);
  }
  stored.delete(key);
  await run(configMaps);
  expect(dataOf(stored.get(key))).toEqual({ 'ca.crt': 'PEM' });
  expect(counted.filter((each) => each === 'ConfigMap written')).toHaveLength(6);
  expect(counted).toContain('ConfigMap unchanged');
});

test('what others wrote beside the content stays', async () => {
  const { run, stored } = has('PEM');
  const key = 'kube-system/serving-ca';
  await run(configMaps);
  const metadata = stored.get(key)?.['metadata'] as JsonObject;
  stored.set(key, { ...stored.get(key), metadata: { ...metadata, labels: { team: 'a' } }, data: {} });
  await run(configMaps);
  expect(stored.get(key)).toMatchObject({ metadata: { labels: { team: 'a' } }, data: { 'ca.crt': 'PEM' } });
});

test.each<[string, JsonObject]>([
  ['no annotation', {}],
  ['the annotation of another signer', { annotations: { [mark]: 'example.com/web' } }],
])('an object with %s is not the relay’s: it stays, and the operator is told', async (_, metadata) => {
  const { run, stored, lines, alarms } = has('PEM');
  const foreign = { metadata: { ...metadata, resourceVersion: '1' }, data: { 'ca.crt': 'theirs' } };
  stored.set('kube-system/serving-ca', foreign);
  await run(configMaps, 5);
  expect(stored.get('kube-system/serving-ca')).toBe(foreign);
  expect(alarms()).toBe(1);
  expect(lines.map((line) => line.split(':')[0])).toEqual(['warn', 'warn', 'warn', 'warn', 'error']);
});

test('no answer, an answer without the signer: nothing is written, and nothing is emptied', async () => {
  let answer = (): ReadonlyMap<string, string> => new Map([[signer, 'PEM']]);
  const { run, stored, lines, alarms } = world(() => answer());
  await run(configMaps);
  const kept = stored.get('kube-system/serving-ca');
  answer = () => new Map();
  await run(configMaps, 6);
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
    'warn: the endpoint has no CA certificates of this signer',
  ]);
  expect(alarms()).toBe(0);
  answer = () => {
    throw new Error('the answer of the endpoint cannot be used');
  };
  await run(configMaps, 6);
  expect(alarms()).toBe(2);
  expect(stored.get('kube-system/serving-ca')).toBe(kept);
});

test('ClusterTrustBundles have the name that the API server demands, in the version that it serves', async () => {
  const { run, stored, serve } = has('PEM');
  await run(bundles);
  serve('v1');
  await run(bundles);
  const name = 'kubernetes.io:kubelet-serving:live';
  expect([...stored.keys()]).toEqual([`v1beta1 ${name}`, `v1 ${name}`]);
  expect(stored.get(`v1 ${name}`)).toMatchObject({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'ClusterTrustBundle',
    metadata: { name, annotations: { [mark]: signer } },
    spec: { signerName: signer, trustBundle: 'PEM' },
  });
});

test('an API server without ClusterTrustBundles is no failure, and is said once', async () => {
  const { run, lines, serve, alarms } = has('PEM');
  serve(undefined);
  await run(bundles, 7);
  expect([lines, alarms()]).toEqual([['info: this API server serves no ClusterTrustBundles'], 0]);
});

test('a missing right is an alarm from the fifth round on, until it is there', async () => {
  const { run, stored, alarms, forbid } = has('PEM');
  forbid(true);
  await run({ ...configMaps, clusterTrustBundleSuffix: 'live' }, 6);
  expect([alarms(), stored.size]).toEqual([4, 0]);
  forbid(false);
  await run({ ...configMaps, clusterTrustBundleSuffix: 'live' });
  expect(stored.size).toBe(2);
});
