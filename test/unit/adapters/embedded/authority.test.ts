import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes, X509Certificate } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { byTier } from '../../../harness/determinism/tier.ts';
import {
  CaUnusableError,
  createEmbeddedCa,
  loadEmbeddedCa,
  temporaryCa,
} from '../../../../adapters/embedded/authority.ts';
import type { CaFiles } from '../../../../adapters/embedded/authority.ts';
import type { CaOrigin } from '../../../../core/ca/make-ca-certificate.ts';
import type { SelfSignedCa } from '../../../../core/configuration/model/cluster.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { visitEveryFault } from '../../../contract/faulty.ts';
import { signatureVerifies } from '../../../contract/signer.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-ca-'));
afterAll(() => rmSync(folder, { recursive: true }));
let folders = 0;
const newFolder = (): string => join(folder, String(++folders));

const base = defaultCluster('demo', { maxTtlSeconds: 3_600 }).cas.get('ca') as SelfSignedCa;
const ca = (change: Partial<SelfSignedCa> = {}): SelfSignedCa => ({ ...base, ...change });
const origin = (): CaOrigin => ({ now: Date.now(), randomBytes });

describe('a new CA', () => {
  test.each([
    [{}, 'ECDSA_SHA_256'],
    [{ keySpec: 'P-384', signatureAlgorithm: 'ECDSA_SHA_384' }, 'ECDSA_SHA_384'],
    [{ keySpec: 'P-521', signatureAlgorithm: 'ECDSA_SHA_512' }, 'ECDSA_SHA_512'],
    [{ keySpec: 'RSA-2048', signatureAlgorithm: 'RSASSA_PKCS1_V1_5_SHA_256' }, 'RSASSA_PKCS1_V1_5_SHA_256'],
    [{ keySpec: 'RSA-2048', signatureAlgorithm: 'RSASSA_PSS_SHA_384' }, 'RSASSA_PSS_SHA_384'],
  ] as const)('of %o says what the configuration says, and is the same after a restart', async (change, algorithm) => {
    const dir = newFolder();
    const wanted = ca({
      ...change,
      subject: { commonName: 'demo CA', organization: 'Example' },
      validitySeconds: 7_200,
    });
    const { created, authority } = await createEmbeddedCa(dir, wanted, origin());
    expect(created).toBe(true);
    const certificate = new X509Certificate(authority.certificate);
    expect(certificate.subject).toBe('O=Example\nCN=demo CA');
    expect(certificate.issuer).toBe(certificate.subject);
    expect(certificate.ca).toBe(true);
    expect(certificate.validToDate.getTime() - Date.now()).toBeLessThanOrEqual(7_200_000);

    const loaded = await loadEmbeddedCa(dir, 'ca');
    expect({ ...loaded, signer: loaded.signer.keyId }).toEqual({ ...authority, signer: authority.signer.keyId });
    expect(loaded.signer.algorithm).toBe(algorithm);
    const tbs = new Uint8Array(randomBytes(300));
    const spki = new Uint8Array(certificate.publicKey.export({ type: 'spki', format: 'der' }));
    expect(signatureVerifies(algorithm, spki, tbs, (await loaded.signer.sign(tbs)).bytes)).toBe(true);
  });

  test('keeps its key to its owner', async () => {
    const dir = newFolder();
    await createEmbeddedCa(dir, ca(), origin());
    expect(statSync(join(dir, 'ca', 'key.pem')).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir, 'ca')).mode & 0o777).toBe(0o700);
    expect(readdirSync(dir)).toEqual(['ca']);
  });

  test('in memory has a key of its own each time and leaves no file', async () => {
    const [one, two] = [await temporaryCa(ca(), origin()), await temporaryCa(ca(), origin())];
    expect(one.signer.keyId).not.toBe(two.signer.keyId);
  });
});

describe('a CA that is there', () => {
  test('is never replaced, whatever is asked for', async () => {
    const dir = newFolder();
    const first = await createEmbeddedCa(dir, ca(), origin());
    const again = await createEmbeddedCa(dir, ca({ subject: { commonName: 'another' } }), origin());
    expect(again.created).toBe(false);
    expect(again.authority.certificate).toEqual(first.authority.certificate);
    expect(again.authority.signer.keyId).toBe(first.authority.signer.keyId);
    const second = await createEmbeddedCa(dir, ca({ name: 'second' }), origin());
    expect(second.created).toBe(true);
    expect(readdirSync(dir).toSorted()).toEqual(['ca', 'second']);
  });

  const files = ['key.pem', 'certificate.pem', 'authority.json'];
  async function damaged(damage: (folder: string) => void): Promise<string> {
    const dir = newFolder();
    await createEmbeddedCa(dir, ca(), origin());
    damage(join(dir, 'ca'));
    return dir;
  }
  async function whyUnusable(dir: string): Promise<string> {
    const error: unknown = await loadEmbeddedCa(dir, 'ca').catch((thrown: unknown) => thrown);
    // And making one does not paper over it.
    await expect(createEmbeddedCa(dir, ca(), origin())).rejects.toThrow(CaUnusableError);
    return error instanceof CaUnusableError ? `${error.why}: ${error.message.replace(folder, '')}` : String(error);
  }

  test.each(files)('without its %s is damaged', async (file) => {
    expect(await whyUnusable(await damaged((at) => unlinkSync(join(at, file))))).toMatch(
      new RegExp(`^Damaged: .*no ${file}`),
    );
  });
  test.each(files)('with nonsense in its %s is damaged', async (file) => {
    expect(await whyUnusable(await damaged((at) => writeFileSync(join(at, file), 'nonsense')))).toMatch(/^Damaged: /);
  });
  test('with the key of another is damaged, and no key is in the message', async () => {
    const other = newFolder();
    await createEmbeddedCa(other, ca(), origin());
    const key = readFileSync(join(other, 'ca', 'key.pem'));
    const why = await whyUnusable(await damaged((at) => writeFileSync(join(at, 'key.pem'), key)));
    expect(why).toMatch(/its key is not the CA key/);
    expect(why).not.toContain('PRIVATE');
  });
  test('with an algorithm its key does not have is damaged', async () => {
    const text = JSON.stringify({ version: 1, signatureAlgorithm: 'RSASSA_PSS_SHA_256' });
    const why = await whyUnusable(await damaged((at) => writeFileSync(join(at, 'authority.json'), text)));
    expect(why).toMatch(/cannot sign with RSASSA_PSS_SHA_256/);
  });
  test('nowhere is missing, and a name that is a path is refused', async () => {
    await expect(loadEmbeddedCa(newFolder(), 'ca')).rejects.toMatchObject({ name: 'CaUnusableError', why: 'Missing' });
    mkdirSync(join(folder, 'empty', 'ca'), { recursive: true });
    await expect(loadEmbeddedCa(join(folder, 'empty'), 'ca')).rejects.toMatchObject({ why: 'Missing' });
    for (const name of ['../ca', '', 'a/b', '.', 'CA'])
      await expect(loadEmbeddedCa(folder, name)).rejects.toThrow(/DNS label/);
  });
});

describe('a CA that another CA of the folder issues', () => {
  const issued = { ...base, kind: 'issued', name: 'nodes', issuedBy: 'ca', subject: { commonName: 'nodes' } } as const;

  test('is the same after a restart, with its chain', async () => {
    const dir = newFolder();
    const { authority: root } = await createEmbeddedCa(dir, ca({ pathLen: 1 }), origin());
    const { authority } = await createEmbeddedCa(dir, issued, origin());
    expect(authority.intermediates).toEqual([authority.certificate]);
    const [certificate, above] = [authority, root].map(({ certificate: der }) => new X509Certificate(der));
    expect(certificate!.checkIssued(above!) && certificate!.verify(above!.publicKey)).toBe(true);
    const loaded = await loadEmbeddedCa(dir, 'nodes');
    expect([loaded.certificate, loaded.intermediates]).toEqual([authority.certificate, [authority.certificate]]);
    expect((await temporaryCa(issued, origin(), root)).intermediates).toHaveLength(1);
  });

  test('is not made before its issuer', async () => {
    await expect(createEmbeddedCa(newFolder(), issued, origin())).rejects.toMatchObject({ why: 'Missing' });
  });
});

describe('while it is being made', () => {
  test('a fault or crash at any step leaves nothing or a whole CA, and the next run ends with one', async () => {
    const { writeFile, mkdir, mkdtemp, rm } = await import('node:fs/promises');
    const steps: CaFiles = {
      makeFolder: (path) => mkdir(path, { recursive: true }),
      makeTemporaryFolder: (prefix) => mkdtemp(prefix),
      writeNew: (path, content, mode) => writeFile(path, content, { mode, flag: 'wx' }),
      rename,
      syncFolder: async () => {},
      remove: (path) => rm(path, { recursive: true, force: true }),
    };
    const visited = await visitEveryFault(
      async (faults) => {
        const dir = newFolder();
        const disturbed = await createEmbeddedCa(dir, ca(), origin(), faults.wrap('files', steps)).catch(
          () => undefined,
        );
        // Another process finds nothing at this moment, or a CA whose parts fit.
        const found = await loadEmbeddedCa(dir, 'ca').catch((error: unknown) => {
          if (error instanceof CaUnusableError && error.why === 'Missing') return undefined;
          throw error;
        });
        const given = disturbed?.authority.signer.keyId ?? found?.signer.keyId;
        expect(found?.signer.keyId).toBe(given);
        const next = await createEmbeddedCa(dir, ca(), origin());
        expect(next.created).toBe(found === undefined);
        expect((await loadEmbeddedCa(dir, 'ca')).signer.keyId).toBe(next.authority.signer.keyId);
        // With no draft left behind, and no key in it.
        expect(readdirSync(dir)).toEqual(['ca']);
      },
      { depth: 2, continueEach: byTier({ default: 3, deep: 1 }) },
    );
    expect(visited.length).toBeGreaterThan(8 * 2 * 2);
  });

  test('removes what a killed process left, once there is a CA, and nothing else', async () => {
    const dir = newFolder();
    const others = ['.ca-web.draft-Ab12Cd', '.web.draft-Ab12Cd', '.ca-backup', '.ca.draft', 'ca.draft-Ab12Cd'];
    for (const name of ['.ca.draft-Ab12Cd', '.ca.draft-zZ09xy', ...others])
      mkdirSync(join(dir, name), { recursive: true });
    writeFileSync(join(dir, '.ca.draft-Ab12Cd', 'key.pem'), 'a key that certified nothing');
    await expect(loadEmbeddedCa(dir, 'ca')).rejects.toMatchObject({ why: 'Missing' });
    expect((await createEmbeddedCa(dir, ca(), origin())).created).toBe(true);
    expect(readdirSync(dir).toSorted()).toEqual(['ca', ...others].toSorted());

    mkdirSync(join(dir, '.ca.draft-Ab12Cd'));
    expect((await createEmbeddedCa(dir, ca(), origin())).created).toBe(false);
    expect(readdirSync(dir).toSorted()).toEqual(['ca', ...others].toSorted());
  });

  test('and its draft is taken away by one that was faster, it takes the CA of that one', async () => {
    const dir = newFolder();
    const { mkdir, mkdtemp, rm, writeFile } = await import('node:fs/promises');
    let faster: Awaited<ReturnType<typeof createEmbeddedCa>> | undefined;
    const slow: CaFiles = {
      makeFolder: (path) => mkdir(path, { recursive: true }),
      makeTemporaryFolder: (prefix) => mkdtemp(prefix),
      async writeNew(path, content, mode) {
        faster ??= await createEmbeddedCa(dir, ca(), origin());
        await writeFile(path, content, { mode, flag: 'wx' });
      },
      rename,
      syncFolder: async () => {},
      remove: (path) => rm(path, { recursive: true, force: true }),
    };
    const { created, authority } = await createEmbeddedCa(dir, ca(), origin(), slow);
    expect([faster?.created, created]).toEqual([true, false]);
    expect(authority.signer.keyId).toBe(faster?.authority.signer.keyId);
    expect(readdirSync(dir)).toEqual(['ca']);
  });

  test('by several processes at once, all end up with the same one', async () => {
    const dir = newFolder();
    const adapter = JSON.stringify(join(import.meta.dirname, '../../../../adapters/embedded/authority.ts'));
    const source = `
      import { randomBytes } from 'node:crypto';
      import { createEmbeddedCa } from ${adapter};
      console.log('ready');
      await new Promise((go) => process.stdin.once('data', go));
      const made = await createEmbeddedCa(${JSON.stringify(dir)}, ${JSON.stringify(ca())}, { now: Date.now(), randomBytes });
      console.log(made.created, made.authority.signer.keyId);
      process.exit(0);`;
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    const output = children.map(() => '');
    children.forEach((child, i) => child.stdout.on('data', (text) => (output[i] += String(text))));
    await Promise.all(children.map((child) => once(child.stdout, 'data')));
    for (const child of children) child.stdin.write('go\n');
    await Promise.all(children.map((child) => once(child, 'close')));
    const answers = output.map((text) => text.trim().split('\n').at(-1)?.split(' ') ?? []);
    expect(answers.filter(([created]) => created === 'true')).toHaveLength(1);
    expect(new Set(answers.map(([, keyId]) => keyId)).size).toBe(1);
    // Two that remove one draft at the same moment may leave it to the next start.
    await createEmbeddedCa(dir, ca(), origin());
    expect(readdirSync(dir)).toEqual(['ca']);
  }, 30_000);
});

test('read while another process makes it, a CA is missing or whole, and never damaged', async () => {
  let whole = 0;
  // Of a reader that looks for a file before it looks for the folder, 300 rounds met a damaged CA 400 times.
  for (let round = 0; round < byTier({ default: 15, deep: 100 }); round += 1) {
    const dir = newFolder();
    let made = false;
    const maker = createEmbeddedCa(dir, ca(), origin()).finally(() => (made = true));
    const reader = async (): Promise<void> => {
      while (!made) {
        try {
          await loadEmbeddedCa(dir, 'ca');
          whole += 1;
        } catch (error) {
          expect(error).toMatchObject({ why: 'Missing' });
        }
      }
    };
    await Promise.all([maker, reader(), reader(), reader()]);
  }
  expect(whole).toBeGreaterThan(0);
});

describe('inside Lambda', () => {
  afterEach(() => vi.unstubAllEnvs());
  test('neither a new nor an old one starts', async () => {
    const dir = newFolder();
    await createEmbeddedCa(dir, ca(), origin());
    vi.stubEnv('LAMBDA_TASK_ROOT', '/var/task');
    await expect(temporaryCa(ca(), origin())).rejects.toThrow(/refuses to start inside AWS Lambda/);
    await expect(loadEmbeddedCa(dir, 'ca')).rejects.toThrow(/refuses to start inside AWS Lambda/);
    await expect(createEmbeddedCa(newFolder(), ca(), origin())).rejects.toThrow(/refuses to start inside AWS Lambda/);
  });
});
