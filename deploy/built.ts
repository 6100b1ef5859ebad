/** What a build wrote: its size and digest, and how both are shown. */
import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

export interface Built {
  readonly path: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export function measured(path: string): Built {
  return { path, bytes: statSync(path).size, sha256: createHash('sha256').update(readFileSync(path)).digest('hex') };
}

export function shown({ path, bytes, sha256 }: Built): string {
  const size = bytes < 1_048_576 ? `${Math.round(bytes / 1_024)} KB` : `${(bytes / 1_048_576).toFixed(1)} MB`;
  return `${path}  ${size}\n  sha256 ${sha256}\n`;
}

/** As `sha256sum -c` reads it. */
export function writeSums(path: string, built: readonly Built[]): void {
  writeFileSync(path, built.map((file) => `${file.sha256}  ${basename(file.path)}\n`).join(''));
}
