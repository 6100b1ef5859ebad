import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { createTpmAuthority, type TpmAuthority } from '../../../harness/tpm/tpm-authority.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('swtpm');

describe.skipIf(skip)('our software TPM', () => {
  let authority: TpmAuthority;
  let tpms: readonly SoftwareTpm[];
  beforeAll(async () => {
    authority = createTpmAuthority();
    tpms = [await startSoftwareTpm({ name: 'one', authority }), await startSoftwareTpm({ name: 'two', authority })];
  });
  afterAll(async () => {
    for (const tpm of tpms) await tpm.stop();
    authority.remove();
  });

  test.for([
    ['rsa-2048', '0x1c00002', '0x81010001'],
    ['p-384', '0x1c00016', '0x81010016'],
  ] as const)('has its %s endorsement key, and the certificate in NV', async ([kind, index, handle]) => {
    const tpm = tpms[0]!;
    await tpm.tool('tpm2_nvread', index, '-o', 'ek.der');
    expect(tpm.read('ek.der')).toEqual(tpm.ekCertificate(kind));
    await tpm.tool('tpm2_readpublic', '-c', handle, '-f', 'pem', '-o', 'ek.pem');
    const { publicKey } = new X509Certificate(tpm.ekCertificate(kind));
    expect(tpm.read('ek.pem').toString()).toBe(publicKey.export({ type: 'spki', format: 'pem' }));
  });

  test('makes a P-256 endorsement key, too', async () => {
    const tpm = tpms[0]!;
    await tpm.tool('tpm2_createek', '-G', 'ecc', '-c', 'ek.ctx', '-f', 'pem', '-u', 'ek256.pem');
    expect(await tpm.handles('transient')).toHaveLength(1);
    await tpm.flush();
    expect(await tpm.handles('transient')).toEqual([]);
    expect(await tpm.handles('persistent')).toEqual(['0x81010001', '0x81010016']);
  });

  test('has another key than the next one, of the same authority', () => {
    const root = new X509Certificate(authority.rootPem());
    const issuer = new X509Certificate(authority.issuerPem());
    expect(issuer.verify(root.publicKey)).toBe(true);
    const keys = tpms.map((tpm) => new X509Certificate(tpm.ekCertificate('p-384')));
    for (const certificate of keys) expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(keys[0]?.publicKey.equals(keys[1]!.publicKey)).toBe(false);
  });

  test('counts its restarts; its clock goes on after an orderly one only', async () => {
    const tpm = tpms[1]!;
    const first = await clock(tpm);
    await tpm.restart({ orderly: true });
    const second = await clock(tpm);
    await tpm.restart({ orderly: false });
    const third = await clock(tpm);
    expect([second.resetCount, third.resetCount]).toEqual([first.resetCount + 1, first.resetCount + 2]);
    expect([first.safe, second.safe, third.safe]).toEqual([true, true, false]);
    expect(second.clock).toBeGreaterThan(first.clock);
  });

  test('calls its clock safe a few seconds after a power failure, though it showed a later one: core/attestation/device.ts', async () => {
    const tpm = tpms[1]!;
    const runFor = async (milliseconds: number) => {
      const from = (await clock(tpm)).clock;
      await expect.poll(async () => (await clock(tpm)).clock - from).toBeGreaterThan(milliseconds);
      return clock(tpm);
    };
    const before = await runFor(10_000);
    await tpm.restart({ orderly: false });
    const after = await runFor(4_200);
    expect(after).toMatchObject({ resetCount: before.resetCount + 1, safe: true });
    expect(after.clock).toBeLessThan(before.clock);
  });

  test('leaves no process and no file, nor its own authority', async () => {
    const tpm = await startSoftwareTpm();
    await tpm.stop();
    expect(tpm.process().ended()).toBeDefined();
    expect([tpm.folder, tpm.authority.folder].filter(existsSync)).toEqual([]);
  });

  async function clock(tpm: SoftwareTpm): Promise<{ resetCount: number; clock: number; safe: boolean }> {
    const text = await tpm.tool('tpm2_readclock');
    const value = (name: string) => new RegExp(`${name}: (\\w+)`).exec(text)?.[1];
    return { resetCount: Number(value('reset_count')), clock: Number(value('clock')), safe: value('safe') === 'yes' };
  }
});
