/** This machine: its Node.js, and the countersign.yaml at hand. */
import { counted } from '../../core/outcome/counted.ts';
import { parseConfiguration } from '../../core/configuration/parse.ts';
import { rulesFingerprint, shortFingerprint } from '../../core/configuration/rules-fingerprint.ts';
import { configurationFile, problemText, readText } from '../cluster/cluster-choice.ts';
import type { CheckRow } from '../output/check-rows.ts';
import { CommandFailure } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

/** As the package of the command line demands (deploy/cli/build.ts). */
export const oldestNode = '22.19.0';

/** `version`: as `process.versions.node` has it. */
export function nodeRow(version: string): CheckRow {
  const row = { id: 'node', check: `Node.js is ${oldestNode} or newer`, seen: version } as const;
  const [own, least] = [version, oldestNode].map((text) => text.split('.').map(Number));
  const [major = 0, minor = 0] = own ?? [];
  const [leastMajor = 0, leastMinor = 0] = least ?? [];
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return { ...row, result: 'pass' };
  return { ...row, result: 'fail', mend: 'install a newer one: https://nodejs.org' };
}

export async function configurationRow(flag: string | undefined, io: Io): Promise<CheckRow> {
  const row = { id: 'config', check: 'countersign.yaml is there and valid' } as const;
  const file = configurationFile(flag, io);
  if (file === undefined)
    return {
      ...row,
      result: 'none',
      seen: 'no ./countersign.yaml',
      mend: '--config FILE or COUNTERSIGN_CONFIG names one; docs/configuration.md',
    };
  try {
    const parsed = parseConfiguration(await readText(file, io), file);
    if (!parsed.ok) {
      const [first] = parsed.problem;
      const seen = `${counted(parsed.problem.length, 'problem')}, the first: ${first === undefined ? '' : problemText(first)}`;
      return { ...row, result: 'fail', seen, mend: `countersign config validate ${file}` };
    }
    const { configuration, warnings } = parsed.value;
    const clusters = [...configuration.clusters.values()].map(
      (cluster) => `${cluster.name} (rules ${shortFingerprint(rulesFingerprint(cluster))})`,
    );
    const seen = `${file}: ${clusters.join(', ')}`;
    if (warnings.length === 0) return { ...row, result: 'pass', seen };
    return {
      ...row,
      result: 'pass',
      seen: `${seen}; ${warnings.length} warnings`,
      mend: `countersign config validate ${file}`,
    };
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    return { ...row, result: 'fail', seen: error.message };
  }
}
