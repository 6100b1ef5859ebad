import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cacheFiles, printed, secretsOf } from '../../../harness/node/authenticator-output.ts';
import {
  signers,
  startAuthenticatorSite,
  type AuthenticatorSite,
  type Node,
} from '../../../harness/node/authenticator-site.ts';

let site: AuthenticatorSite;
beforeAll(async () => {
  site = await startAuthenticatorSite();
});
afterAll(() => site?.close());

const once = (node: Node, ...more: readonly string[]) => node.run({ args: ['serving', '--once', ...more] });
const servingRequests = async () => (await site.requests()).filter(({ signerName }) => signerName === signers.serving);

test('gets both certificates on a machine that has none; one file is certificate and key, as the kubelet reads it', async () => {
  const node = await site.node('serves');
  const program = await once(node);
  expect([program.code, program.stdout, program.stderr]).toEqual([
    0,
    '',
    expect.stringContaining('serving certificate'),
  ]);
  const file = join(node.cache, 'serving.pem');
  const pem = readFileSync(file, 'utf8');
  expect(() => createSecureContext({ cert: pem, key: pem })).not.toThrow();
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const certificate = new X509Certificate(pem);
  expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:serves');
  const { interfaces } = site.platform.aws.instances.get(node.instanceId)!;
  const [primary] = interfaces[0]!.addresses;
  expect(certificate.subjectAltName?.split(', ').toSorted()).toEqual(
    [`DNS:${primary!.dnsName}`, 'DNS:serves', `IP Address:${primary!.address}`].toSorted(),
  );
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  // Asked by the node itself, with evidence of its own over the serving key.
  const [request, ...others] = await servingRequests();
  expect(others).toEqual([]);
  expect(request).toMatchObject({ username: 'system:node:serves' });
  expect(request!.pem).toContain('ATTESTATION DATA');
  expect(pem).not.toContain(printed(await node.run()).keyPem);
  for (const secret of secretsOf(node)) expect(program.stderr).not.toContain(secret);

  const again = await once(node);
  expect([again.code, again.stderr, (await servingRequests()).length]).toEqual([0, '', 1]);
});

test('is renewed with a new key when it is due, and asked for again when its names are others', async () => {
  const node = await site.node('renewed');
  expect((await once(node)).code).toBe(0);
  const first = cacheFiles(node)['serving.pem']!;
  const { validTo } = new X509Certificate(first);
  site.platform.advance(Math.round(0.85 * (Date.parse(validTo) - site.platform.now())));
  expect((await once(node)).code).toBe(0);
  const second = cacheFiles(node)['serving.pem']!;
  expect(new X509Certificate(second).publicKey.equals(new X509Certificate(first).publicKey)).toBe(false);

  const { interfaces } = site.platform.aws.instances.get(node.instanceId)!;
  const [primary] = interfaces[0]!.addresses;
  const moved = [{ ...interfaces[0]!, addresses: [{ ...primary!, address: '10.0.77.7' }] }];
  // An address of its own again after it was stopped; its identity document names it.
  site.platform.aws.change(node.instanceId, { interfaces: moved });
  site.platform.aws.stop(node.instanceId);
  site.platform.aws.start(node.instanceId);
  expect((await once(node)).code).toBe(0);
  expect(new X509Certificate(cacheFiles(node)['serving.pem']!).subjectAltName).toContain('10.0.77.7');
});

test('a name that is not the machine’s is refused, and the kubelet serves with what it has', async () => {
  const node = await site.node('greedy');
  expect((await once(node)).code).toBe(0);
  const before = cacheFiles(node)['serving.pem'];
  const program = await once(node, '--serving-name', 'api.example.com');
  expect(program.code).toBe(1);
  expect(program.stderr).toContain('(NameNotOwned)');
  expect(cacheFiles(node)['serving.pem']).toBe(before);
});

test('--watch gets it, stays, and ends on SIGTERM', async () => {
  const node = await site.node('watched');
  let stop = (): void => {};
  const ended = node.run({
    args: ['serving', '--watch'],
    onStart: (child) => {
      stop = () => void child.kill('SIGTERM');
    },
  });
  await expect.poll(() => readable(node)).toHaveProperty('serving.pem');
  stop();
  expect(await ended).toMatchObject({ code: 0, signal: null });
});

test('a cluster that leaves serving certificates to the kubelet has no signer for them', async () => {
  const node = await site.node('stock');
  const { servingSignerName: _, ...settings } = JSON.parse(readFileSync(node.settingsFile, 'utf8')) as Record<
    string,
    unknown
  >;
  writeFileSync(node.settingsFile, JSON.stringify(settings));
  const program = await once(node);
  expect(program.code).toBe(3);
  expect(program.stderr).toContain('servingSignerName (--serving-signer-name) is missing');
});

function readable(node: Node): Record<string, string> {
  try {
    return cacheFiles(node);
  } catch {
    return {};
  }
}
