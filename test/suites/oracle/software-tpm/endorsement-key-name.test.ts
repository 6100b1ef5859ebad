/** `countersign machines ek` with the files that tpm2-tools write: every way to collect an endorsement key gives one name. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';

const { skip } = await requireTools('swtpm');

describe.skipIf(skip)('the name of an endorsement key of tpm2-tools', () => {
  let tpm: SoftwareTpm;
  beforeAll(async () => {
    tpm = await startSoftwareTpm();
  });
  afterAll(() => tpm?.stop());

  /** The name that the command prints for a file that the tool wrote. */
  async function nameOf(tool: `tpm2_${string}`, ...args: readonly string[]): Promise<string> {
    await tpm.tool(tool, ...args);
    if (tool === 'tpm2_createek') await tpm.flush();
    const file = args.at(-1) ?? '';
    const ran = await run(['machines', 'ek', '-'], { files: { '-': tpm.read(file) } });
    expect(ran).toMatchObject({ code: 0, err: '' });
    return ran.out;
  }

  test.each([
    ['rsa', '0x81010001', '0x1c00002'],
    ['ecc384', '0x81010016', '0x1c00016'],
  ])('%s: from the certificate in NV, from the persistent key, and created anew', async (kind, handle, index) => {
    const fromNv = await nameOf('tpm2_nvread', index, '-o', 'ek.der');
    expect(fromNv).toMatch(/^tpm#[0-9a-f]{64}\n$/);
    for (const format of ['tss', 'tpmt', 'pem', 'der'])
      expect(await nameOf('tpm2_readpublic', '-c', handle, '-f', format, '-o', 'ek.read'), format).toBe(fromNv);
    // tpm2-tools have no template of P-384 endorsement keys.
    if (kind !== 'rsa') return;
    for (const format of ['tss', 'tpmt', 'pem', 'der'])
      expect(await nameOf('tpm2_createek', '-G', kind, '-c', 'ek.ctx', '-f', format, '-u', 'ek.made'), format).toBe(
        fromNv,
      );
    // As in --help: the default format.
    expect(await nameOf('tpm2_createek', '-G', kind, '-c', 'ek.ctx', '-u', 'ek.pub')).toBe(fromNv);
  });

  test('the script of docs/attestation/tpm.md collects the certificate that the node takes first', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/attestation/tpm.md'), 'utf8');
    const [, script = ''] = /```sh\n(# collect-ek\.sh[^`]*)```/.exec(page) ?? [];
    const collect = (text: string) =>
      execFileSync('sh', ['-s'], { input: text, env: { ...tpm.environment, TMPDIR: tpm.folder } });
    expect(collect(script)).toEqual(tpm.ekCertificate('rsa-2048'));
    // A TPM without certificates, by other indexes.
    const bare = collect(script.replaceAll('0x1c0', '0x1d0'));
    await tpm.flush();
    const ran = await run(['machines', 'ek', '-'], { files: { '-': bare } });
    expect(ran.out).toBe(await nameOf('tpm2_createek', '-G', 'ecc', '-c', 'ek.ctx', '-f', 'pem', '-u', 'ek.pem'));
  });

  test('an attestation key is refused', async () => {
    await tpm.tool('tpm2_createek', '-G', 'rsa', '-c', 'ek.ctx');
    await tpm.tool('tpm2_createak', '-C', 'ek.ctx', '-c', 'ak.ctx', '-G', 'ecc', '-u', 'ak.pub');
    await tpm.flush();
    const ran = await run(['machines', 'ek', '-'], { files: { '-': tpm.read('ak.pub') } });
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('not its endorsement key')]);
  });
});
