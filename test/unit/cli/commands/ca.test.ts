import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { run } from '../run.ts';

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'countersign-ca-'));
});
afterEach(() => rmSync(data, { recursive: true }));

const init = (...flags: string[]) => run(['ca', 'init', '--data', data, ...flags]);
const show = (...flags: string[]) => run(['ca', 'show', '--data', data, ...flags]);

async function certificate(name = 'ca'): Promise<X509Certificate> {
  return new X509Certificate((await show('--name', name, '-o', 'pem')).out);
}

test('init creates a CA; show prints the same CA as a table and as JSON', async () => {
  const made = await init('-o', 'json');
  expect([made.code, made.err]).toEqual([0, '']);
  const shown = await show('-o', 'json');
  expect(shown).toEqual(made);
  const facts = JSON.parse(shown.out) as Record<string, string>;
  const read = await certificate();
  const spki = read.publicKey.export({ type: 'spki', format: 'der' });
  // subjectKeyIdentifier: OID 2.5.29.14, OCTET STRING of OCTET STRING of 20 octets
  const keyIdentifier = /0603551d0e04160414([0-9a-f]{40})/.exec(Buffer.from(read.raw).toString('hex'))?.[1];
  expect(facts).toEqual({
    name: 'ca',
    subject: 'CN=Countersign ca',
    serial: read.serialNumber.toLowerCase(),
    notBefore: '2026-06-01T11:55:00.000Z',
    notAfter: '2036-05-29T12:00:00.000Z',
    key: 'P-256',
    signatureAlgorithm: 'ECDSA_SHA_256',
    keyId: `embedded:${createHash('sha256').update(spki).digest('hex')}`,
    subjectKeyIdentifier: keyIdentifier,
    fingerprintSha256: read.fingerprint256.replaceAll(':', '').toLowerCase(),
  });
  expect(read.ca).toBe(true);
  const table = (await show()).out;
  for (const value of Object.values(facts)) expect(table).toContain(value);
});

test('every option reaches the certificate', async () => {
  const ran = await init(
    ...'--name web --key-spec RSA-2048 --signature-algorithm RSASSA_PSS_SHA_256'.split(' '),
    ...'--validity 10d --path-len 3 -o json --subject'.split(' '),
    'CN=web\\, CA, O=Example,OU=PKI,C=CH',
  );
  expect(JSON.parse(ran.out)).toMatchObject({
    name: 'web',
    key: 'RSA-2048',
    signatureAlgorithm: 'RSASSA_PSS_SHA_256',
    notAfter: '2026-06-11T12:00:00.000Z',
  });
  const read = await certificate('web');
  expect(read.subject.split('\n').toSorted()).toEqual(['C=CH', 'CN=web\\, CA', 'O=Example', 'OU=PKI']);
  expect(Buffer.from(read.raw).toString('hex')).toContain('30060101ff020103'); // cA TRUE, pathLen 3
});

test('the CA of a configuration', async () => {
  const config = join(data, 'countersign.yaml');
  writeFileSync(
    config,
    `version: 1
clusters:
  a: {cas: {ca: {subject: {commonName: A}, keySpec: P-384}}, profiles: {kubernetes.io/kubelet-serving: {}}}
  b: {cas: {ca: {subject: {commonName: B}}}, profiles: {kubernetes.io/kubelet-serving: {}}}
`,
  );
  const made = await init('--config', config, '--cluster', 'a', '-o', 'json');
  expect(JSON.parse(made.out)).toMatchObject({ subject: 'CN=A', key: 'P-384', signatureAlgorithm: 'ECDSA_SHA_384' });
  expect((await init('--config', config)).err).toMatch(/--cluster names one of a, b/);
  expect((await init('--config', config, '--cluster', 'c')).code).toBe(4);
  expect((await init('--config', config, '--cluster', 'a', '--name', 'x')).err).toMatch(/--name is one of ca/);
  expect((await init('--config', config, '--cluster', 'a', '--path-len', '1')).err).toMatch(
    /--config <file>' cannot be used with option '--path-len/,
  );
});

test('init never overwrites', async () => {
  await init();
  const before = readFileSync(join(data, 'ca/key.pem'));
  const again = await init('--subject', 'CN=other');
  expect(again.code).toBe(6);
  expect(again.err).toMatch(/left as it is/);
  expect(readFileSync(join(data, 'ca/key.pem'))).toEqual(before);
});

describe('usage errors', () => {
  test.each([
    ['a key kind', ['--key-spec', 'P256'], /--key-spec: "P256" is not known here; did you mean "P-256"\?/],
    [
      'an algorithm for another key',
      ['--signature-algorithm', 'ECDSA_SHA_384'],
      /--signature-algorithm: a P-256 key signs with ECDSA_SHA_256/,
    ],
    ['a duration', ['--validity', '1y'], /--validity: must be a duration/],
    ['a path length', ['--path-len', '-1'], /--path-len/],
    ['half a path length', ['--path-len', '1.5'], /--path-len: must be a/],
    ['a name for a folder', ['--name', '../x'], /must be a DNS label/],
    ['a subject', ['--subject', 'Example'], /"Example" is not understood/],
    ['a subject attribute', ['--subject', 'CN=a,L=b'], /"L=b" is not understood/],
    ['a subject with two names', ['--subject', 'CN=a,CN=b'], /CN is given twice/],
    ['a subject without a name', ['--subject', 'O=a'], /--subject: is required|--common-name|--subject/],
    ['an empty name', ['--subject', 'CN='], /must not be empty/],
    [
      'a folder and a function',
      ['--function', 'f', '--region', 'r'],
      /--data <dir>' cannot be used with option '--function/,
    ],
    ['a folder and a cluster', ['--cluster', 'prod'], /leave out --cluster/],
    ['an option', ['--keyspec', 'P-256'], /did you mean --key-spec/],
  ])('%s', async (_, flags, message) => {
    const ran = await init(...flags);
    expect(ran.err).toMatch(message);
    expect(ran.code).toBe(2);
    expect(readdirSync(data)).toEqual([]);
  });

  test('neither a folder nor a cluster', async () => {
    const ran = await run(['ca', 'init']);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(/which CA\? --cluster names a deployed cluster, --data a folder/);
  });
});

test('show of a CA that does not exist', async () => {
  const ran = await show();
  expect([ran.code, ran.out]).toEqual([4, '']);
  expect(ran.err).toMatch(/there is no CA .*\n.*ca init creates one/);
});

test('show of a CA that is damaged names no key', async () => {
  await init();
  const key = readFileSync(join(data, 'ca/key.pem'), 'utf8');
  await init('--name', 'other');
  writeFileSync(join(data, 'ca/key.pem'), readFileSync(join(data, 'other/key.pem')));
  const ran = await show();
  expect([ran.code, ran.out]).toEqual([3, '']);
  expect(ran.err).toMatch(/cannot be used/);
  expect(ran.err).not.toContain(key.split('\n')[1]);
});

test('a folder that cannot be written is a configuration error', async () => {
  writeFileSync(join(data, 'file'), '');
  const ran = await run(['ca', 'init', '--data', join(data, 'file')]);
  expect(ran.code).toBe(3);
  expect(existsSync(join(data, 'file/ca'))).toBe(false);
});

test('no key is ever printed', async () => {
  const runs = [await init(), await init(), await show(), await show('-o', 'json'), await show('-o', 'pem')];
  for (const { out, err } of runs) expect(out + err).not.toMatch(/PRIVATE/);
});
