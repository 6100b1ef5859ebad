import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { krewManifest } from '../../../deploy/release/krew.ts';

test('the manifest of krew is made from version, addresses and checksums', () => {
  const archive = (architecture: 'x64' | 'arm64', digit: string) => ({
    architecture,
    url: `https://example.com/v1.2.3/countersign-1.2.3-linux-${architecture}.tar.gz`,
    sha256: digit.repeat(64),
  });
  const made = krewManifest({
    version: '1.2.3',
    homepage: 'https://example.com',
    archives: [archive('x64', 'a'), archive('arm64', 'b')],
  });
  expect(made).toBe(readFileSync(join(import.meta.dirname, 'countersign.krew.yaml'), 'utf8'));
});
