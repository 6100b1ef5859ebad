import { execFile } from 'node:child_process';
import { createHmac, randomBytes, webcrypto } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeAttest } from '../../../../core/attestation/tpm/structures/attest.ts';
import type { EndorsementKeyKind } from '../../../../kubelet-authenticator/settings/settings.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import {
  algorithm,
  bytes,
  certificateFor,
  challengeFor,
  checkQuote,
  evidenceOf,
  left,
  untouched,
  writeNv,
} from '../../../harness/tpm/tpm-evidence.ts';
import { requireTools } from '../../../tools/tools.ts';

/* TPMs that are restarted, busy, locked, switched off, shared, or provisioned in unusual ways. */
const { skip } = await requireTools('swtpm');
const root = resolve(import.meta.dirname, '../../../..');

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder('tpm-node');
});
afterEach(() => folder.remove());

const cacheOf = (name = 'cache') => join(folder.path, name);
const node = (tpm: SoftwareTpm, kind?: EndorsementKeyKind, directory = cacheOf()) => ({ tpm, kind, directory });

describe.skipIf(skip)('a TPM', () => {
  let tpm: SoftwareTpm;
  beforeAll(async () => {
    tpm = await startSoftwareTpm();
  });
  afterAll(() => tpm.stop());

  test('has the same attestation key after a restart, and the clock goes on', async () => {
    const before = await evidenceOf(node(tpm));
    await tpm.restart({ orderly: true });
    const orderly = await evidenceOf(node(tpm));
    await tpm.restart({ orderly: false });
    const unexpected = await evidenceOf(node(tpm));
    const clocks = [before, orderly, unexpected].map(({ evidence }) => {
      const attest = decodeAttest(bytes(evidence.quote.attest));
      return attest.ok ? attest.value.clock : undefined;
    });
    const first = clocks[0]?.resetCount ?? 0;
    expect(clocks.map((clock) => clock?.resetCount)).toEqual([first, first + 1, first + 2]);
    expect(clocks[1]!.clock).toBeGreaterThan(clocks[0]!.clock);
    expect(new Set([before, orderly, unexpected].map(({ evidence }) => evidence.ak)).size).toBe(1);
  });

  test('with occupied slots is used all the same', async () => {
    for (const name of ['a', 'b', 'c']) await tpm.tool('tpm2_createprimary', '-Q', '-C', 'o', '-G', 'ecc', '-c', name);
    expect(await tpm.handles('transient')).toHaveLength(3);
    const { digest, evidence } = await evidenceOf(node(tpm, 'p-256'));
    await checkQuote(tpm, evidence, digest);
    expect(await left(tpm)).toEqual(untouched);
  });

  test('is used by several programs of one node at once', async () => {
    const { evidence } = await evidenceOf(node(tpm, 'p-256'));
    const challenge = await challengeFor(tpm, evidence, randomBytes(32));
    const made = await Promise.all([1, 2, 3].map(() => evidenceOf(node(tpm, 'p-256'), challenge)));
    for (const { digest, evidence: each } of made) {
      expect(each.ak).toBe(evidence.ak);
      await checkQuote(tpm, each, digest);
    }
    expect(await left(tpm)).toEqual(untouched);
  });

  test('has nothing left of a process that was killed, after the next one', async () => {
    const { evidence } = await evidenceOf(node(tpm, 'rsa-2048'));
    const challenge = await challengeFor(tpm, evidence, randomBytes(32));
    const program = join(folder.path, 'make-evidence.ts');
    const module = (name: string) => JSON.stringify(join(root, 'kubelet-authenticator/providers', name));
    writeFileSync(
      program,
      `import { tpmProvider } from ${module('tpm.ts')};
       import { withTpm } from ${module('tpm-tools.ts')};
       const place = ${JSON.stringify({ directory: cacheOf(), tcti: tpm.tcti, path: process.env['PATH'] })};
       const challenge = ${JSON.stringify(challenge)};
       const question = { version: 'tpm/v1', clusterName: 'c', binding: () => 'ab'.repeat(32), nonce: 'n', now: 0, challenge };
       await tpmProvider((work) => withTpm(place, work), 'rsa-2048').makeEvidence(question);`,
    );
    const child = execFile(process.execPath, [program]);
    const ended = new Promise((done) => child.once('exit', done));
    // It has a session in the TPM now.
    while (!existsSync(join(cacheOf(), 'tpm/session.ctx'))) await sleep(1);
    child.kill('SIGKILL');
    await ended;
    expect(existsSync(join(cacheOf(), 'tpm'))).toBe(true);
    await expect.poll(() => tpm.handles('saved-session')).toHaveLength(1);
    await evidenceOf(node(tpm, 'rsa-2048'));
    expect(await left(tpm)).toEqual(untouched);
    expect(existsSync(join(cacheOf(), 'tpm'))).toBe(false);
  });

  test('that was switched off says so, and is used again when it is back', async () => {
    await tpm.process().stop('SIGKILL');
    await expect(evidenceOf(node(tpm))).rejects.toThrow(
      `the TPM does not answer at ${tpm.tcti} (TPM2TOOLS_TCTI): Could not load tcti`,
    );
    await tpm.restart({ orderly: false });
    await expect(evidenceOf(node(tpm))).resolves.toBeDefined();
  });

  test('in lockout quotes and opens challenges, but not with a P-384 key; the message says what to do', async () => {
    const [rsa, p384] = await Promise.all(
      (['rsa-2048', 'p-384'] as const).map(async (kind) => {
        const { evidence } = await evidenceOf(node(tpm, kind));
        return evidence;
      }),
    );
    const forRsa = await challengeFor(tpm, rsa!, randomBytes(32));
    const forP384 = await challengeFor(tpm, p384!, randomBytes(32));
    const limits = ['--recovery-time=1000', '--lockout-recovery-time=1000', '--max-tries=1'];
    await tpm.tool('tpm2_dictionarylockout', '--setup-parameters', ...limits);
    await tpm.tool('tpm2_createprimary', '-Q', '-C', 'o', '-G', 'ecc', '-p', 'right', '-c', 'guarded');
    await expect(
      tpm.tool('tpm2_create', '-Q', '-C', 'guarded', '-P', 'wrong', '-G', 'ecc', '-u', 'p', '-r', 's'),
    ).rejects.toThrow('0x98E');
    await tpm.flush();
    try {
      expect((await evidenceOf(node(tpm, 'rsa-2048'), forRsa)).evidence.activation).toBeDefined();
      await expect(evidenceOf(node(tpm, 'p-384'), forP384)).rejects.toThrow('the TPM is in lockout');
      expect(await left(tpm)).toEqual(untouched);
    } finally {
      await tpm.tool('tpm2_dictionarylockout', '--clear-lockout');
    }
    expect((await evidenceOf(node(tpm, 'p-384'), forP384)).evidence.activation).toBeDefined();
  });

  test('that is cleared has the same attestation key, and counters that begin again', async () => {
    // The persistent keys are gone after this.
    const before = await evidenceOf(node(tpm));
    await tpm.tool('tpm2_clear');
    const after = await evidenceOf(node(tpm));
    expect([after.evidence.ak, after.evidence.ek]).toEqual([before.evidence.ak, before.evidence.ek]);
    const attest = decodeAttest(bytes(after.evidence.quote.attest));
    expect(attest).toMatchObject({ ok: true, value: { clock: { resetCount: 0 } } });
  });
});

describe.skipIf(skip)('a TPM of a manufacturer', () => {
  let tpm: SoftwareTpm;
  beforeAll(async () => {
    tpm = await startSoftwareTpm();
  });
  afterAll(() => tpm.stop());

  test('with a P-256 certificate in NV has it in its evidence, without what follows it there', async () => {
    await tpm.tool('tpm2_createek', '-G', 'ecc', '-c', 'ek.ctx', '-u', 'ek.pem', '-f', 'pem');
    await tpm.flush();
    const certificate = await certificateFor(tpm.read('ek.pem').toString());
    await writeNv(tpm, '0x1c0000a', Buffer.concat([certificate, Buffer.alloc(100, 0xff)]));
    const { evidence } = await evidenceOf(node(tpm, 'p-256'));
    expect(bytes(evidence.ek.cert)).toEqual(certificate);
    const secret = randomBytes(32);
    const answer = await evidenceOf(node(tpm, 'p-256'), await challengeFor(tpm, evidence, secret));
    expect(bytes(answer.evidence.activation?.proof)).toEqual(
      createHmac('sha256', secret).update(answer.digest).digest(),
    );
  });

  test('whose certificate is about a key of another template answers with the persistent key', async () => {
    // The policy of the default template, but no `unique` of zeros.
    const policy = Buffer.from('837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa', 'hex');
    writeFileSync(join(tpm.folder, 'policy'), policy);
    const attributes = 'fixedtpm|fixedparent|sensitivedataorigin|adminwithpolicy|restricted|decrypt';
    const template = ['-C', 'e', '-g', 'sha256', '-G', 'ecc256:null:aes128cfb', '-a', attributes, '-L', 'policy'];
    await tpm.tool('tpm2_createprimary', '-Q', ...template, '-c', 'own.ctx', '-f', 'pem', '-o', 'own.pem');
    await tpm.tool('tpm2_evictcontrol', '-Q', '-C', 'o', '-c', 'own.ctx', '0x81010002');
    await tpm.flush();
    await writeNv(tpm, '0x1c0000a', await certificateFor(tpm.read('own.pem').toString()));
    try {
      const { evidence } = await evidenceOf(node(tpm, 'p-256'));
      const challenge = await challengeFor(tpm, evidence, randomBytes(32));
      expect((await evidenceOf(node(tpm, 'p-256'), challenge)).evidence.activation).toBeDefined();
    } finally {
      await tpm.tool('tpm2_evictcontrol', '-Q', '-C', 'o', '-c', '0x81010002');
    }
  });

  test('whose certificate is about another key cannot answer, and the message names the key', async () => {
    const { publicKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const pem = Buffer.from(await webcrypto.subtle.exportKey('spki', publicKey)).toString('base64');
    await writeNv(
      tpm,
      '0x1c0000a',
      await certificateFor(`-----BEGIN PUBLIC KEY-----\n${pem}\n-----END PUBLIC KEY-----\n`),
    );
    const { evidence } = await evidenceOf(node(tpm, 'p-256'));
    const challenge = await challengeFor(tpm, evidence, randomBytes(32));
    await expect(evidenceOf(node(tpm, 'p-256'), challenge)).rejects.toThrow(
      'the p-256 endorsement key of the TPM is not the one of its certificate',
    );
  });

  test.for([
    ['arbitrary bytes', Buffer.from('none'), 'NV index 0x1c0000a of the TPM holds no certificate'],
    ['a certificate that is cut', Buffer.from('30820400', 'hex'), 'holds no certificate'],
  ] as const)('whose certificate is %s is not another machine: an error', async ([, content, message]) => {
    await writeNv(tpm, '0x1c0000a', content);
    await expect(evidenceOf(node(tpm, 'p-256'))).rejects.toThrow(message);
  });

  test('with a certificate of another kind is an error', async () => {
    await writeNv(tpm, '0x1c0000a', tpm.ekCertificate('p-384'));
    await expect(evidenceOf(node(tpm, 'p-256'))).rejects.toThrow('is about a key of type ec secp384r1');
  });

  test('without a SHA-256 bank says what to change', async () => {
    await tpm.tool('tpm2_pcrallocate', 'sha1:all+sha256:none');
    await tpm.restart({ orderly: true });
    await expect(evidenceOf(node(tpm, 'rsa-2048'))).rejects.toThrow(/SHA-256 bank of PCRs: enable it in the firmware/);
  });
});
