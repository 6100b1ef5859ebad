import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { toolPath } from '../../tools/tools.ts';

/** What CycloneDX's own library says against a document, or an empty text. */
export async function problemsOf(document: string): Promise<string> {
  const script = join(resolve(import.meta.dirname, '../../tools/cyclonedx'), 'validate.py');
  const options = { input: document, encoding: 'utf8', timeout: 120_000, maxBuffer: 16 * 1_048_576 } as const;
  const { status, stdout, stderr } = spawnSync(await toolPath('cyclonedx'), [script], options);
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
