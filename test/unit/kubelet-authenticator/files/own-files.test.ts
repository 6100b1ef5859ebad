/** Where another user could have put a file, nothing is read and nothing is written. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  makeDirectory,
  readCredentials,
  readText,
  replaceFile,
  workFile,
} from '../../../../kubelet-authenticator/files/cache.ts';
import type { Slot } from '../../../../kubelet-authenticator/files/cache.ts';
import { conflicts, writeFiles } from '../../../../kubelet-authenticator/join/join-files.ts';
import { lockFile, takeLock } from '../../../../kubelet-authenticator/files/lock.ts';
import { bootstrapLogin } from '../../../../kubelet-authenticator/request/login.ts';
import {
  checkOwnDirectory,
  readGivenFile,
  readOwnFile,
  readOwnSecret,
} from '../../../../kubelet-authenticator/files/own-files.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

/** Another user, and not a member of a group that we are in. */
const otherUser = 65_432;
const isRoot = process.geteuid?.() === 0;

let folder: ReturnType<typeof temporaryFolder>;
let slot: Slot;
const at = (name: string) => join(folder.path, name);
const lockNow = () => takeLock(slot, () => 0, 0);
beforeEach(() => {
  folder = temporaryFolder('own-files');
  slot = { directory: at('cache'), name: 'client' };
});
afterEach(() => folder.remove());

describe('finding 11: the lock file', () => {
  test('that is a symbolic link is refused, and its target stays as it is', async () => {
    makeDirectory(slot);
    writeFileSync(at('target'), 'kept', { mode: 0o644 });
    symlinkSync(at('target'), lockFile(slot));
    await expect(lockNow()).rejects.toThrow(`${lockFile(slot)} is a symbolic link`);
    expect([readFileSync(at('target'), 'utf8'), statSync(at('target')).mode & 0o777]).toEqual(['kept', 0o644]);
  });

  test('that points to nothing makes nothing', async () => {
    makeDirectory(slot);
    symlinkSync(at('new'), lockFile(slot));
    await expect(lockNow()).rejects.toThrow('is a symbolic link');
    expect(existsSync(at('new'))).toBe(false);
  });

  test('has mode 0600 under any umask; an existing one with another mode is corrected', async () => {
    makeDirectory(slot);
    (await lockNow())?.release();
    expect(lstatSync(lockFile(slot)).mode & 0o777).toBe(0o600);
    chmodSync(lockFile(slot), 0o644);
    (await lockNow())?.release();
    expect(lstatSync(lockFile(slot)).mode & 0o777).toBe(0o600);
  });

  test('checking it does not release a lock that this process holds', async () => {
    makeDirectory(slot);
    const held = await lockNow();
    expect(await lockNow()).toBeUndefined();
    // Another process asks the kernel.
    const program = `const { DatabaseSync } = require('node:sqlite');
      const database = new DatabaseSync(${JSON.stringify(lockFile(slot))}, { timeout: 0 });
      database.exec('BEGIN EXCLUSIVE');`;
    expect(spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' }).stderr).toContain('database is locked');
    held?.release();
  });
});

describe('finding 11: the cache directory', () => {
  test('that others may write to is refused with the command that mends it, and nothing of it is used', () => {
    for (const mode of [0o770, 0o707, 0o1777]) {
      mkdirSync(slot.directory, { recursive: true });
      chmodSync(slot.directory, mode);
      writeFileSync(join(slot.directory, 'client.pem'), 'x');
      const words = `${slot.directory} can be written by other users (mode ${mode.toString(8).padStart(4, '0')}): chmod go-w ${slot.directory}, or use another place`;
      expect(() => makeDirectory(slot)).toThrow(words);
      expect([...readCredentials(slot)]).toEqual([
        { file: slot.directory, ok: false, problem: words.slice(slot.directory.length + 1) },
      ]);
    }
  });

  test('below a folder that others may write to is refused; below a sticky one, as /tmp, it is not', () => {
    mkdirSync(at('open'));
    const below = { ...slot, directory: at('open/cache') };
    makeDirectory(below);
    chmodSync(at('open'), 0o777);
    expect(() => makeDirectory(below)).toThrow(`chmod go-w ${at('open')}`);
    chmodSync(at('open'), 0o1777);
    expect(() => makeDirectory(below)).not.toThrow();
    makeDirectory({ ...slot, directory: at('open/another') });
    chmodSync(at('open'), 0o777);
    expect(() => makeDirectory({ ...slot, directory: at('open/third') })).toThrow('can be written by other users');
    expect(existsSync(at('open/third'))).toBe(false);
  });

  test('may be a link of ours', () => {
    mkdirSync(at('real'));
    symlinkSync(at('real'), slot.directory);
    makeDirectory(slot);
    replaceFile(workFile(slot), 'work');
    expect(readText(workFile(slot))).toEqual({ ok: true, value: 'work' });
  });

  test.skipIf(!isRoot)('of another user, or behind their link, is refused', () => {
    makeDirectory(slot);
    chownSync(slot.directory, otherUser, otherUser);
    expect(() => makeDirectory(slot)).toThrow(
      `belongs to user ${otherUser}, who could replace what is read there: chown root ${slot.directory}`,
    );

    mkdirSync(at('sticky'));
    chmodSync(at('sticky'), 0o1777);
    mkdirSync(at('real'));
    symlinkSync(at('real'), at('sticky/link'));
    expect(() => checkOwnDirectory(at('sticky/link'))).not.toThrow();
    spawnSync('chown', ['-h', String(otherUser), at('sticky/link')]);
    expect(() => checkOwnDirectory(at('sticky/link'))).toThrow(`${at('sticky/link')} belongs to user ${otherUser}`);
  });

  test('a link in place of a file is not read', () => {
    makeDirectory(slot);
    writeFileSync(at('elsewhere'), 'secret');
    symlinkSync(at('elsewhere'), join(slot.directory, 'client-next.json'));
    expect(readText(workFile(slot))).toEqual({
      ok: false,
      problem: expect.stringContaining('is a symbolic link') as unknown,
    });
    // Written anew, it is a file of ours again, and the target is as it was.
    replaceFile(workFile(slot), 'work');
    expect([readText(workFile(slot)), readFileSync(at('elsewhere'), 'utf8')]).toEqual([
      { ok: true, value: 'work' },
      'secret',
    ]);
  });
});

describe('finding 11: files that are believed', () => {
  test('settings, CA and credentials: a link of ours is followed, a file that others may write to is refused', async () => {
    writeFileSync(at('token'), JSON.stringify({ token: 'abcdef.0123456789abcdef' }), { mode: 0o600 });
    symlinkSync(at('token'), at('link'));
    expect(await bootstrapLogin(at('link'))).toMatchObject({ as: 'bootstrap' });
    chmodSync(at('token'), 0o620);
    await expect(bootstrapLogin(at('link'))).rejects.toThrow(/^the bootstrap credentials: .*chmod go-w /);
  });

  test.skipIf(!isRoot)('of another user are refused', () => {
    writeFileSync(at('settings.json'), '{}');
    chownSync(at('settings.json'), otherUser, otherUser);
    const program = join(import.meta.dirname, '../../../../kubelet-authenticator/kubelet-authenticator.ts');
    const ran = spawnSync(process.execPath, [program, 'exec', '--settings', at('settings.json')], { encoding: 'utf8' });
    expect([ran.status, ran.stdout]).toEqual([3, '']);
    expect(ran.stderr).toContain(`the settings: ${at('settings.json')} belongs to user ${otherUser}`);
  });

  test('neither a pipe, a folder, a loop of links nor what is too large is read', () => {
    spawnSync('mkfifo', [at('pipe')]);
    symlinkSync(at('b'), at('a'));
    symlinkSync(at('a'), at('b'));
    writeFileSync(at('large'), Buffer.alloc(1_048_577));
    expect(() => readOwnFile(at('pipe'))).toThrow('is not a regular file');
    expect(() => readOwnFile(folder.path)).toThrow('is not a regular file');
    expect(() => readOwnFile(at('a'))).toThrow('too many symbolic links');
    expect(() => readOwnFile(at('large'))).toThrow('is larger than 1048576 bytes');
  });

  test('a token may come through a pipe', () => {
    const module = join(import.meta.dirname, '../../../../kubelet-authenticator/files/own-files.ts');
    const program = `import { readGivenFile } from ${JSON.stringify(module)}; process.stdout.write(readGivenFile('/dev/stdin'))`;
    const command = 'printf token | "$0" --input-type=module -e "$1"';
    const ran = spawnSync('sh', ['-c', command, process.execPath, program], { encoding: 'utf8' });
    expect(ran.stdout).toBe('token');
    expect(() => readGivenFile(at('absent'))).toThrow('ENOENT');
  });
});

describe('finding 11: what join writes', () => {
  const file = () => ({ path: at('etc/pki/ca.crt'), mode: 0o644, text: 'ca' });

  test('goes nowhere that others may write to', () => {
    mkdirSync(at('etc'));
    chmodSync(at('etc'), 0o775);
    expect(() => writeFiles([file()], true)).toThrow(`chmod go-w ${at('etc')}`);
    expect(existsSync(at('etc/pki'))).toBe(false);
    chmodSync(at('etc'), 0o755);
    writeFiles([file()], false);
    expect(readFileSync(file().path, 'utf8')).toBe('ca');
  });

  test('replaces a link and not what it points to', () => {
    mkdirSync(at('etc/pki'), { recursive: true });
    writeFileSync(at('target'), 'kept');
    symlinkSync(at('target'), file().path);
    expect(conflicts([file()])).toEqual([file().path]);
    writeFiles([file()], true);
    expect([lstatSync(file().path).isFile(), readFileSync(at('target'), 'utf8')]).toEqual([true, 'kept']);
  });
});

describe('a private key of the operator', () => {
  test('must not be readable by others; its group may read it, as Puppet has it', () => {
    writeFileSync(at('key'), 'k');
    symlinkSync(at('key'), at('link'));
    for (const mode of [0o644, 0o604]) {
      chmodSync(at('key'), mode);
      const words = `${at('key')} can be read by other users (mode 0${mode.toString(8)}): chmod o-rwx ${at('key')}`;
      expect(() => readOwnSecret(at('link'))).toThrow(words);
    }
    for (const mode of [0o600, 0o640, 0o400]) {
      chmodSync(at('key'), mode);
      expect(readOwnSecret(at('link'))).toBe('k');
    }
    chmodSync(at('key'), 0o660);
    expect(() => readOwnSecret(at('key'))).toThrow('can be written by other users');
  });
});
