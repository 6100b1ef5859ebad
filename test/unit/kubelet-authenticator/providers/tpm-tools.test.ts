/*
 * What calling tpm2-tools makes of every way in which they fail. The programs are shell scripts in a folder of the test; those
 * of the machine run in test/suites/node/kubelet-authenticator/tpm.test.ts.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TpmError, withTpm, type Tpm } from '../../../../kubelet-authenticator/providers/tpm-tools.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder('tpm-tools');
  mkdirSync(join(folder.path, 'bin'));
  writeProgram('tpm2_flushcontext', '');
});
afterEach(() => folder.remove());

const cache = () => join(folder.path, 'cache');
const priv = () => join(cache(), 'tpm');
const programs = () => `${join(folder.path, 'bin')}:/usr/bin:/bin`;

/** Each call is noted. */
function writeProgram(name: string, script: string): void {
  const note = `echo "${name} $*" >> ${folder.path}/calls`;
  writeFileSync(join(folder.path, 'bin', name), `#!/bin/sh\n${note}\n${script}\n`, { mode: 0o755 });
}

const calls = () => readFileSync(join(folder.path, 'calls'), 'utf8').trim().split('\n');

function use<T>(work: (tpm: Tpm) => Promise<T>, tcti?: string, programMilliseconds?: number): Promise<T> {
  return withTpm({ directory: cache(), tcti, path: programs(), programMilliseconds }, work);
}

/** The error of a program that ends with this script. */
async function errorOf(script: string, tcti?: string): Promise<TpmError> {
  writeProgram('tpm2_quote', script);
  return use((tpm) => tpm.run('tpm2_quote', []), tcti).then(
    () => expect.unreachable('it failed'),
    (error: unknown) => error as TpmError,
  );
}

/** As tpm2-tools print the answer of a TPM. */
const answers = (code: string, text = 'text of the code') =>
  `echo "WARNING: something else" >&2; echo "ERROR: Failed to quote" >&2; echo "ERROR: Esys_Quote(${code}) - ${text}" >&2; echo "ERROR: Unable to run tpm2_quote" >&2; exit 1`;
const noTcti = (tcti: string) => `echo 'ERROR: Could not load tcti, got: "${tcti}"' >&2; exit 1`;

test.for([
  [
    'a code',
    answers('0x9A2', 'tpm:session(1):authorization failure'),
    /^the TPM refuses tpm2_quote: Esys_Quote\(0x9A2\) - tpm:session\(1\):authorization failure$/,
    0x9a2,
  ],
  ['a code behind a resource manager', answers('0xB0921'), /^the TPM is in lockout .*tpm2_dictionarylockout/, 0x921],
  ['lockout', answers('0x921'), /^the TPM is in lockout/, 0x921],
  ['an error of the library', answers('0x70001'), /^tpm2_quote failed: Esys_Quote\(0x70001\)/, undefined],
  [
    'an error of the program',
    'echo "ERROR: Unknown option" >&2; exit 2',
    /^tpm2_quote failed: Unknown option$/,
    undefined,
  ],
  ['no word', 'exit 1', /^tpm2_quote failed: no message$/, undefined],
  ['a signal', 'kill -KILL $$', /^tpm2_quote was killed \(SIGKILL\)$/, undefined],
] as const)('a program that ends with %s', async ([, script, message, code]) => {
  const error = await errorOf(script);
  expect(error).toBeInstanceOf(TpmError);
  expect(error.message).toMatch(message);
  expect(error.code).toBe(code);
});

test('a program that is not installed: the message names the package', async () => {
  await expect(use((tpm) => tpm.run('tpm2_absent', []))).rejects.toThrow(
    'tpm2_absent is not installed: apt-get install tpm2-tools (Debian, Ubuntu) or dnf install tpm2-tools (RHEL, Fedora)',
  );
});

test('a program that must not be executed', async () => {
  writeFileSync(join(folder.path, 'bin/tpm2_private'), '', { mode: 0o600 });
  await expect(use((tpm) => tpm.run('tpm2_private', []))).rejects.toThrow('tpm2_private cannot be started (EACCES)');
});

test('a program that does not end', async () => {
  writeProgram('tpm2_quote', 'exec sleep 60');
  await expect(use((tpm) => tpm.run('tpm2_quote', []), undefined, 100)).rejects.toThrow(
    'tpm2_quote did not end within 0.1 seconds',
  );
});

test('a device that is not there, and a TPM that does not answer', async () => {
  const device = `device:${join(folder.path, 'tpmrm0')}`;
  expect((await errorOf(noTcti(device), device)).message).toBe(
    `there is no TPM: ${join(folder.path, 'tpmrm0')} does not exist (is a TPM 2.0 enabled in the firmware?)`,
  );
  const swtpm = 'swtpm:host=127.0.0.1,port=1';
  expect((await errorOf(noTcti(swtpm), swtpm)).message).toBe(
    `the TPM does not answer at ${swtpm} (TPM2TOOLS_TCTI): Could not load tcti, got: "${swtpm}"`,
  );
  // It broke while the program used it: a code of the library's transport.
  const broken = await errorOf(answers('0xA000A', 'tcti:IO failure'), swtpm);
  expect(broken.message).toMatch(/^the TPM does not answer at swtpm:/);
});

test('a device that this user may not open', () => {
  const device = join(folder.path, 'tpmrm0');
  writeFileSync(device, '', { mode: 0o000 });
  writeProgram('tpm2_quote', noTcti(`device:${device}`));
  const program = `
    import { withTpm } from ${JSON.stringify(import.meta.resolve('../../../../kubelet-authenticator/providers/tpm-tools.ts'))};
    const options = ${JSON.stringify({ directory: cache(), tcti: `device:${device}`, path: programs() })};
    await withTpm(options, (tpm) => tpm.run('tpm2_quote', [])).catch((error) => console.log(error.message));
  `;
  const node = [process.execPath, '--input-type=module', '--eval', program];
  // Root opens every file, unless it has given up the capabilities for that.
  const asRoot = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', ...node];
  const [command, ...args] = process.getuid?.() === 0 ? asRoot : node;
  expect(execFileSync(command!, args, { encoding: 'utf8' })).toMatch(
    /^this user may not open .*: run as root, or as a member of .* tss\n$/,
  );
});

test.for(['0x902', '0x903', '0x905', '0x906', '0x90A', '0x922'])(
  'a TPM that is busy (%s) is asked again, with its slots freed',
  async (code) => {
    writeProgram('tpm2_quote', `[ "$(grep -c quote ${folder.path}/calls)" -ge 3 ] || { ${answers(code)}; }; echo done`);
    expect(await use((tpm) => tpm.run('tpm2_quote', ['-q', 'ab']))).toBe('done\n');
    const again = ['tpm2_quote -q ab', 'tpm2_flushcontext -t'];
    expect(calls()).toEqual([...again, ...again, ...again]);
  },
);

test('a TPM that stays busy is given up, and one that refuses is not asked again', async () => {
  expect((await errorOf(answers('0x922'))).code).toBe(0x922);
  expect(calls().filter((line) => line.includes('quote'))).toHaveLength(6);
  await errorOf(answers('0x1DF'));
  expect(calls().filter((line) => line.includes('quote'))).toHaveLength(7);
});

test('programs get a private directory, their settings and their input, and nothing else of the environment', async () => {
  process.env['SECRET'] = 'secret';
  writeProgram(
    'tpm2_quote',
    'cat; pwd; env | cut -d= -f1 | sort | tr "\\n" " "; echo; echo "$TPM2TOOLS_TCTI"; umask 0; echo x > out',
  );
  await use(async (tpm) => {
    const [input, directory, names, tcti] = (await tpm.run('tpm2_quote', [], 'input\n')).split('\n');
    expect([input, directory, tcti]).toEqual(['input', priv(), 'device:/dev/tpmrm0']);
    expect(names).toBe('LC_ALL PATH PWD TPM2TOOLS_TCTI TSS2_LOG ');
    expect(tpm.read('out').toString()).toBe('x\n');
    expect(statSync(priv()).mode & 0o777).toBe(0o700);
    tpm.write('credential', Buffer.from('c'));
    expect(statSync(join(priv(), 'credential')).mode & 0o777).toBe(0o600);
  });
  expect(existsSync(priv())).toBe(false);
});

test('the directory goes, and the session and the slots are freed, also after an error', async () => {
  writeProgram('tpm2_quote', `: > session.ctx; ${answers('0x1DF')}`);
  await expect(use((tpm) => tpm.run('tpm2_quote', []))).rejects.toThrow('0x1DF');
  expect(calls().slice(1)).toEqual(['tpm2_flushcontext session.ctx', 'tpm2_flushcontext -t']);
  expect(existsSync(priv())).toBe(false);
});

test('the session of a process that was killed is freed by the next one', async () => {
  mkdirSync(priv(), { recursive: true });
  for (const name of ['session.ctx', 'secret']) writeFileSync(join(priv(), name), '');
  await use((tpm) => {
    expect(calls()).toEqual(['tpm2_flushcontext session.ctx', 'tpm2_flushcontext -t']);
    expect(() => tpm.read('secret')).toThrow('ENOENT');
    return Promise.resolve();
  });
});

test('two uses of one node wait for each other', async () => {
  writeProgram('tpm2_quote', '[ ! -e busy ] || exit 1; : > busy; sleep 0.2; rm busy');
  await Promise.all([1, 2, 3].map(() => use((tpm) => tpm.run('tpm2_quote', []))));
  expect(calls().filter((line) => line.includes('quote'))).toHaveLength(3);
});
