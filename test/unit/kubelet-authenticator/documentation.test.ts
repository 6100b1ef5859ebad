/** docs/kubelet-authenticator.md names exactly the flags and commands of the program. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { renewalMoment } from '../../../kubelet-authenticator/files/check-credential.ts';
import {
  defaultCacheDirectory,
  defaultSettingsFile,
  defaultSignerName,
  keyKinds,
  settingFlags,
} from '../../../kubelet-authenticator/settings/settings.ts';

const root = resolve(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/kubelet-authenticator.md'), 'utf8');
const rows = [...page.matchAll(/^\| (`--.*?) \| (.*?) \|/gm)];
const documented = rows.flatMap(([, flags = '']) => [...flags.matchAll(/--([a-z-]+)/g)].map(([, flag]) => flag));

test('every flag is in the table with its setting, and none that the program does not know', () => {
  for (const [flag, setting] of Object.entries(settingFlags)) {
    const row = rows.find(([, flags = '']) => flags.includes(`\`--${flag}`));
    expect([flag, row?.[2]]).toEqual([flag, expect.stringContaining(`\`${setting}\``)]);
  }
  const known = new Set([...Object.keys(settingFlags), 'settings', 'serving-name', 'keep-bootstrap-token', 'wait']);
  expect(documented.filter((flag) => !known.has(flag ?? ''))).toEqual([]);
  expect(documented).toHaveLength(known.size);
});

test('defaults are the program’s', () => {
  for (const text of [defaultSettingsFile, defaultCacheDirectory, defaultSignerName('<provider>' as 'aws')])
    expect(page).toContain(`\`${text}`);
  for (const kind of [keyKinds[0], keyKinds[1], keyKinds[2], keyKinds[3], 'Ed25519']) expect(page).toContain(kind);
});

test('the commands of its table are those of --help', () => {
  const program = join(root, 'kubelet-authenticator/kubelet-authenticator.ts');
  const help = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' });
  const commands = [...help.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);
  expect(commands).toEqual(['exec', 'join', 'serving', 'version']);
  for (const name of commands) expect(page).toMatch(new RegExp(`^\\| \`${name}\\b`, 'm'));
});

test('its table of lifetimes is what the program computes', () => {
  const table = [...page.matchAll(/^\| (\d+)([hd])[^|]*\| ([\d.]+) to ([\d.]+) ([hd]) \| ([\d.]+) ([hd]) \|$/gm)];
  expect(table.length).toBeGreaterThanOrEqual(4);
  const hours = (value: string | undefined, unit: string | undefined) => Number(value) * (unit === 'd' ? 24 : 1);
  for (const [line, ttl, ttlUnit, first, last, unit, left, leftUnit] of table) {
    const notAfter = hours(ttl, ttlUnit) * 3_600_000;
    for (let seed = 0; seed < 200; seed += 1) {
      const leaf = { raw: Buffer.from([seed]) } as Parameters<typeof renewalMoment>[0]['leaf'];
      const credential = { leaf, notBefore: -1, notAfter, issuedAt: 0, certificatePem: '', keyPem: '' };
      const at = renewalMoment(credential) / 3_600_000;
      // Rounded to what people read.
      expect([line, at >= hours(first, unit) * 0.98]).toEqual([line, true]);
      expect([line, at <= hours(last, unit) * 1.02]).toEqual([line, true]);
      expect([line, notAfter / 3_600_000 - at >= hours(left, leftUnit) * 0.98]).toEqual([line, true]);
    }
  }
});
