/** A CA of a data folder whose certificate, or key too, comes from outside: whole or not there, whatever fails. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createEmbeddedCa, findEmbeddedCa } from '../../../../adapters/embedded/authority.ts';
import type { CaFiles } from '../../../../adapters/embedded/authority.ts';
import { importEmbeddedCa, requestForEmbedded } from '../../../../adapters/embedded/imported-authority.ts';
import type { ImportedCa } from '../../../../core/configuration/model/cluster.ts';
import { visitEveryFault } from '../../../contract/faulty.ts';
import { importNow, pathDer, pathKeys } from '../../../harness/x509/imported-path.ts';

const root = mkdtempSync(join(tmpdir(), 'countersign-imported-'));
afterAll(() => rmSync(root, { recursive: true }));
let folders = 0;
const newFolder = (): string => join(root, String(++folders));

const ca: ImportedCa = {
  name: 'nodes',
  kind: 'imported',
  keyMaterial: 'imported',
  keySpec: 'P-256',
  signatureAlgorithm: 'ECDSA_SHA_256',
  subject: { commonName: 'prod nodes' },
  pathLen: 0,
};
const { own: privateKey, middle } = pathKeys;
const path = pathDer();
const certificates = {
  certificate: new Uint8Array(path.own),
  chain: [new Uint8Array(path.middle)],
  root: new Uint8Array(path.root),
};

describe('an existing key', () => {
  test('and its certificate become a CA, with the chain, and only the owner reads the key', async () => {
    const dir = newFolder();
    const imported = await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey });
    expect(imported).toMatchObject({ ok: true, value: { created: true } });
    const found = await findEmbeddedCa(dir, 'nodes');
    expect(found?.chain.map((der) => Buffer.from(der))).toEqual([path.middle, path.root]);
    expect(found?.authority.intermediates).toHaveLength(2);
    expect(statSync(join(dir, 'nodes', 'key.pem')).mode & 0o777).toBe(0o600);
    const again = await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey });
    expect(again).toMatchObject({ ok: true, value: { created: false } });
  });

  test('of another certificate leaves no file', async () => {
    const dir = newFolder();
    const refused = await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey: middle });
    expect(refused).toMatchObject({ ok: false, problem: { why: 'WrongKey' } });
    expect(() => readdirSync(dir)).toThrow('ENOENT');
  });

  test('does not replace a CA that is in force', async () => {
    const dir = newFolder();
    await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey });
    const before = readFileSync(join(dir, 'nodes', 'certificate.pem'), 'utf8');
    const other = pathDer({ own: { notAfter: importNow + 86_400_000 } }).own;
    const refused = await importEmbeddedCa(dir, ca, { ...certificates, certificate: other }, importNow, { privateKey });
    expect(refused).toMatchObject({ ok: false, problem: { why: 'AlreadyInForce' } });
    expect(readFileSync(join(dir, 'nodes', 'certificate.pem'), 'utf8')).toBe(before);
  });

  test('and a fault or crash at any step: nothing or a whole CA, and the same import ends with one', async () => {
    const steps: CaFiles = {
      makeFolder: (name) => mkdir(name, { recursive: true }),
      makeTemporaryFolder: (prefix) => mkdtemp(prefix),
      writeNew: (name, content, mode) => writeFile(name, content, { mode, flag: 'wx' }),
      rename,
      syncFolder: async () => {},
      remove: (name) => rm(name, { recursive: true, force: true }),
    };
    const visited = await visitEveryFault(async (faults) => {
      const dir = newFolder();
      const files = faults.wrap('files', steps);
      const first = await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey, files }).catch(
        () => undefined,
      );
      const found = await findEmbeddedCa(dir, 'nodes');
      if (first?.ok === true) expect(found).toBeDefined();
      const next = await importEmbeddedCa(dir, ca, certificates, importNow, { privateKey });
      expect(next).toMatchObject({ ok: true, value: { created: found === undefined } });
      expect((await findEmbeddedCa(dir, 'nodes'))?.chain).toHaveLength(2);
      // The next start of the dev server removes the draft of a killed import, and the key in it.
      await createEmbeddedCa(dir, ca, { now: importNow, randomBytes: () => new Uint8Array() });
      expect(readdirSync(dir)).toEqual(['nodes']);
    });
    expect(visited.length).toBeGreaterThanOrEqual(8 * 2 * 2);
  });
});

describe('a key that the request makes', () => {
  const requested: ImportedCa = { ...ca, keyMaterial: 'kms' };
  const keyIn = (dir: string): string => readFileSync(join(dir, '.nodes.awaits-import', 'key.pem'), 'utf8');

  test('waits for its certificate: each request is of the same key, at once too', async () => {
    const dir = newFolder();
    const made = await Promise.all([requestForEmbedded(dir, requested), requestForEmbedded(dir, requested)]);
    expect(made.map(({ ok }) => ok)).toEqual([true, true]);
    const spki = createPublicKey(keyIn(dir)).export({ type: 'spki', format: 'der' }).toString('hex');
    for (const each of [...made, await requestForEmbedded(dir, requested)])
      expect(each.ok && Buffer.from(each.value).toString('hex')).toContain(spki);
    expect(readdirSync(dir)).toEqual(['.nodes.awaits-import']);
    expect(statSync(join(dir, '.nodes.awaits-import', 'key.pem')).mode & 0o777).toBe(0o600);
  });

  test('moves into the CA once its certificate comes; no copy stays', async () => {
    const dir = newFolder();
    await requestForEmbedded(dir, requested);
    const key = createPrivateKey(keyIn(dir));
    const { own } = pathDer({ own: { key } });
    const refused = await importEmbeddedCa(dir, requested, certificates, importNow);
    expect(refused).toMatchObject({ ok: false, problem: { why: 'WrongKey' } });
    const files = { ...certificates, certificate: new Uint8Array(own) };
    expect(await importEmbeddedCa(dir, requested, files, importNow)).toMatchObject({ ok: true });
    expect(readdirSync(dir)).toEqual(['nodes']);
    const certificate = new X509Certificate((await findEmbeddedCa(dir, 'nodes'))!.authority.certificate);
    expect(certificate.checkPrivateKey(key)).toBe(true);
    // A request for the same key is possible later too: its certificate expires one day.
    expect((await requestForEmbedded(dir, requested)).ok).toBe(true);
  });

  test('was never made: the import says so by ENOENT', async () => {
    await expect(importEmbeddedCa(newFolder(), requested, certificates, importNow)).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  test('does not sign as configured since: refused, and no CA is in force', async () => {
    const dir = newFolder();
    await requestForEmbedded(dir, requested);
    const { own } = pathDer({ own: { key: createPrivateKey(keyIn(dir)) } });
    const changed: ImportedCa = { ...requested, keySpec: 'P-384', signatureAlgorithm: 'ECDSA_SHA_384' };
    const files = { ...certificates, certificate: new Uint8Array(own) };
    for (const refused of [
      await requestForEmbedded(dir, changed),
      await importEmbeddedCa(dir, changed, files, importNow),
    ])
      expect(refused).toMatchObject({ ok: false, problem: { why: 'AlgorithmMismatch' } });
    expect(await findEmbeddedCa(dir, 'nodes')).toBeUndefined();
  });
});
