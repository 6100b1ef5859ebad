/** `countersign ca csr|import|import-key --data`: what is printed, the exit codes, and that no message has a key. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { basicConstraints, keyOf, keyUsage } from '../../../harness/x509/certificate-writer.ts';
import { caExtensions, importNow, pathDer, pathKeys, pathPems, pem } from '../../../harness/x509/imported-path.ts';
import { now, run } from '../run.ts';

let data: string;
beforeEach(() => {
  data = join(mkdtempSync(join(tmpdir(), 'countersign-import-')), 'cas');
});
afterEach(() => rmSync(join(data, '..'), { recursive: true }));

/** Once: each call makes new ones. */
const path = pathPems();
const keyPem = (key = pathKeys.own): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** `change`: of the CA in the configuration. */
async function ask(argv: string, files: Readonly<Record<string, string>> = {}, change = '') {
  const config = `{version: 1, clusters: {dev: {cas: {nodes: {kind: imported, subject: {commonName: prod nodes}, ${change}}},
    profiles: {kubernetes.io/kubelet-serving: {}}}}}`;
  return run([...argv.split(' '), '--data', data, '--config', 'countersign.yaml', '--name', 'nodes'], {
    files: {
      'countersign.yaml': config,
      'ca.crt': path.certificate,
      'chain.pem': path.chain,
      'root.crt': path.root,
      ...files,
    },
  });
}

const importKey = 'ca import-key --cert ca.crt --chain chain.pem --root root.crt --key ca.key';
const moved = 'keyMaterial: imported';
const show = () => run(['ca', 'show', '--data', data, '--name', 'nodes', '-o', 'pem']);

test('the clocks of both harnesses agree', () => {
  expect(now).toBe(importNow);
});

test('a request, its certificate from elsewhere, and the CA is in force', async () => {
  const early = await ask('ca import --cert ca.crt --chain chain.pem --root root.crt');
  expect([early.code, early.out]).toEqual([4, '']);
  expect(early.err).toMatch(/there is no key of CA nodes .*\n.*ca csr makes one; countersign ca import-key takes/);
  expect((await show()).code).toBe(4);

  const asked = await ask('ca csr');
  expect([asked.code, asked.err]).toEqual([0, '']);
  expect(asked.out).toMatch(/^-----BEGIN CERTIFICATE REQUEST-----/);
  const key = createPrivateKey(readFileSync(join(data, '.nodes.awaits-import', 'key.pem')));
  const certificate = pem(pathDer({ own: { key } }).own);
  const wrong = await ask('ca import --cert ca.crt --chain chain.pem --root root.crt');
  expect([wrong.code, wrong.err.split(':')[1]]).toEqual([1, ' WrongKey']);

  const argv = 'ca import --cert ca.crt --chain chain.pem --root root.crt -o pem';
  const made = await ask(argv, { 'ca.crt': certificate });
  expect(made).toEqual({ code: 0, out: certificate, err: '' });
  expect((await show()).out).toBe(certificate);
  const again = await ask(argv, { 'ca.crt': certificate });
  expect(again).toMatchObject({ code: 0, out: certificate });
  expect(again.err).toContain('was in force before');
  const other = pem(pathDer({ own: { key, notAfter: importNow + 1_000_000 } }).own);
  const refused = await ask(argv, { 'ca.crt': other });
  expect([refused.code, refused.err]).toEqual([6, expect.stringContaining('left as it is') as string]);
});

test('an existing key and its certificate; its notes are printed', async () => {
  const certificate = pem(
    pathDer({
      own: {
        extensions: caExtensions(pathKeys.own, pathKeys.middle, {
          usage: keyUsage(0, 2, 5),
          constraints: basicConstraints(true),
        }),
      },
    }).own,
  );
  const ran = await ask(importKey, { 'ca.key': keyPem(), 'ca.crt': certificate }, moved);
  expect(ran.code).toBe(0);
  expect(ran.err.match(/^note: .*$/gm)).toEqual([
    'note: The certificate of nodes lacks cRLSign: it signs no CRL, since relying parties would refuse it.',
    'note: The certificate of nodes permits any number of CAs below it; the configuration says 0.',
  ]);
  expect(new X509Certificate((await show()).out).checkPrivateKey(pathKeys.own)).toBe(true);
  expect(ran.out + ran.err).not.toContain('PRIVATE');
});

test.each<[string, string, Readonly<Record<string, string>>, string, number, RegExp]>([
  [
    'the key of another CA',
    importKey,
    { 'ca.key': keyPem(pathKeys.middle) },
    moved,
    1,
    /WrongKey: the certificate of the CA is not of the key/,
  ],
  [
    'a key of another kind than configured',
    importKey,
    { 'ca.key': keyPem(keyOf('large', 'P-384')) },
    moved,
    3,
    /the private key is P-384, and CA nodes is configured with keySpec P-256/,
  ],
  ['a certificate instead of the key', importKey, { 'ca.key': path.root }, moved, 3, /holds no private key/],
  ['no key file', importKey, {}, moved, 4, /^countersign: there is no file ca\.key$/m],
  [
    'a key beside the certificate',
    importKey,
    { 'ca.key': keyPem(), 'ca.crt': path.certificate + keyPem() },
    moved,
    1,
    /NotPem/,
  ],
  [
    'an encrypted key',
    importKey,
    {
      'ca.key': pathKeys.own
        .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
        .toString(),
    },
    moved,
    3,
    /is encrypted\n.*openssl pkey -in ca\.key \| countersign ca import-key --key -/,
  ],
  ['no root', 'ca import-key --cert ca.crt --key ca.key', { 'ca.key': keyPem() }, moved, 1, /RootMissing/],
])('%s is refused, and nothing is written', async (_, argv, files, change, code, message) => {
  const ran = await ask(argv, files, change);
  expect(ran.err).toMatch(message);
  expect([ran.code, ran.out]).toEqual([code, '']);
  expect(ran.err).not.toMatch(/PRIVATE|[A-Za-z0-9+/]{40}/);
  expect(() => readdirSync(data)).toThrow('ENOENT');
});

test('--data needs the configuration, and one that has such a CA', async () => {
  const argv = ['ca', 'csr', '--data', data];
  const without = await run(argv);
  expect([without.code, without.err]).toEqual([2, expect.stringContaining('--data needs --config') as string]);
  const selfSigned =
    '{version: 1, clusters: {dev: {cas: {ca: {subject: {commonName: x}}}, profiles: {kubernetes.io/kubelet-serving: {}}}}}';
  const ran = await run([...argv, '--config', 'c.yaml'], { files: { 'c.yaml': selfSigned } });
  expect([ran.code, ran.err]).toEqual([4, expect.stringContaining('no CA ca of kind: imported') as string]);
});
