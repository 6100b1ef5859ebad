/** A folder of the embedded store for the command line to work on, and the records that are put into it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openEmbeddedAttestations } from '../../../adapters/embedded/attestations.ts';
import type { EmbeddedAttestations } from '../../../adapters/embedded/attestations.ts';
import { embeddedData } from '../../../adapters/embedded/data.ts';
import type { AuditItem, IdentityRecord, Verdict } from '../../../core/ports/attestation-store.ts';
import { violation } from '../../../core/outcome/outcome.ts';
import type { RefusalCode } from '../../../core/outcome/outcome.ts';
import { now } from './run.ts';

export interface Folder extends EmbeddedAttestations {
  /** For `--data`. */
  readonly path: string;
}

export const machine = (digit: string): string => `aws#aws/111122223333/eu-central-1/i-${digit.repeat(17)}`;
export const hour = 3_600_000;

export async function newFolder(): Promise<Folder> {
  const root = mkdtempSync(join(tmpdir(), 'countersign-cli-'));
  const { attestationsFile } = embeddedData(root, 'demo');
  await mkdir(dirname(attestationsFile));
  const opened = openEmbeddedAttestations(attestationsFile);
  onTestFinished(() => {
    opened.close();
    rmSync(root, { recursive: true });
  });
  return { ...opened, path: dirname(attestationsFile) };
}

export function recordOf(nodeName: string, digit: string, change: Partial<IdentityRecord> = {}): IdentityRecord {
  return {
    identity: machine(digit),
    nodeName,
    state: 'active',
    spkiSha256: digit.repeat(64),
    previousSpkis: [],
    providerId: `aws:///eu-central-1a/i-${digit.repeat(17)}`,
    startedAt: now - 3 * hour,
    addresses: [],
    firstSeen: now - 2 * hour,
    lastSeen: now - hour,
    renewals: 0,
    uses: 1,
    lastUid: `uid-${digit}`,
    rev: 1,
    ...change,
  };
}

export function verdictOf(
  nodeName: string,
  refused: readonly (readonly [RefusalCode, string])[] = [],
  change: Partial<Verdict> = {},
): Verdict {
  const [first, ...more] = refused.map(([code, message]) => violation(code, message));
  return {
    uid: `verdict-${nodeName}-${Math.random()}`,
    requestDigest: 'ab'.repeat(32),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    annotations: {},
    nodeName,
    mode: 'audit',
    decidedAt: now - hour,
    expiresAt: now + 24 * hour,
    ...(first === undefined ? { decision: 'approve' } : { decision: 'deny', violations: [first, ...more] }),
    ...change,
  };
}

/** A first use, as attest writes it; with `retire`, by a machine that takes the name of that one over. */
export async function used(
  { store }: Pick<EmbeddedAttestations, 'store'>,
  record: IdentityRecord,
  retire?: IdentityRecord,
): Promise<void> {
  const verdict = verdictOf(record.nodeName, [], { mode: 'enforce', identity: record.identity, firstKey: true });
  const claim = {
    verdict,
    once: [],
    newAddresses: record.addresses,
    audit: [],
    ...(retire === undefined ? {} : { retire }),
  };
  const write = await store.claim({ ...claim, identity: { kind: 'create', record } }, now);
  if (write.kind !== 'written') throw new Error(`the record of ${record.nodeName} was not written`);
}

export async function judged(
  { store }: Pick<EmbeddedAttestations, 'store'>,
  ...verdicts: readonly Verdict[]
): Promise<void> {
  for (const verdict of verdicts)
    await store.claim(
      { verdict, once: [], identity: { kind: 'none' }, newAddresses: [], audit: [] },
      verdict.decidedAt,
    );
}

export function audited({ register }: EmbeddedAttestations): Promise<readonly AuditItem[]> {
  return Array.fromAsync(register.listAudit());
}
