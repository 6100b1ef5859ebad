/** A ledger with certificates that core/issue.ts made, opened as a command opens one. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createEmbeddedCa } from '../../../../adapters/embedded/authority.ts';
import { ledgerFileIn } from '../../../../adapters/embedded/data.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { issue } from '../../../../core/issue.ts';
import { decodeRequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import type { CertificateLedger, IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import type { LockReader } from '../../../../core/ports/locks.ts';
import { noLocks } from '../../../harness/kubernetes/no-locks.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { csrFixture } from '../../lambdas/sign/stack.ts';
import type { CsrChange } from '../../lambdas/sign/stack.ts';

export interface LedgerFolder {
  /** For `--data`. */
  readonly folder: string;
  readonly ledger: CertificateLedger;
  /** Issues at this time, and returns the record. Throws with the outcome if it is another one. */
  issued(
    at: number,
    change?: CsrChange & { readonly identity?: string; readonly locks?: LockReader },
  ): Promise<IssuingRecord>;
}

export const day = 86_400_000;

/** `keyId`: what the records name as the key of the CA. `whenFinished`: for a hook, which is no test. */
export async function ledgerFolder(
  keyId?: string,
  whenFinished: (cleanUp: () => void) => void = onTestFinished,
): Promise<LedgerFolder> {
  const { path: folder, remove } = temporaryFolder('inventory');
  const { ledger, close } = openEmbeddedLedger(ledgerFileIn(join(folder)));
  whenFinished(() => {
    close();
    remove();
  });
  const cluster = defaultCluster('demo', { maxTtlSeconds: 30 * 86_400 });
  const [ca] = cluster.cas.values();
  if (ca === undefined) throw new Error('the default cluster has no CA');
  const { authority: made } = await createEmbeddedCa(folder, ca, { now: Date.now() - 300 * day, randomBytes });
  let requests = 0;
  const authority = {
    ...made,
    signer: {
      ...made.signer,
      ...(keyId === undefined ? {} : { keyId }),
      sign: async (tbs: Uint8Array) => ({ ...(await made.signer.sign(tbs)), requestId: `kms-${(requests += 1)}` }),
    },
  };
  return {
    folder,
    ledger,
    async issued(at, { identity, locks = noLocks, ...change } = {}) {
      const csr = csrFixture(change);
      const object = decodeRequestObject(csr);
      if (!object.ok) throw new Error(object.problem.message);
      const outcome = await issue(object.value, cluster, {
        ledger:
          identity === undefined
            ? ledger
            : { ...ledger, open: (intent: never) => ledger.open({ ...(intent as object), identity } as never) },
        locks,
        authority: async () => authority,
        now: () => at,
        randomBytes,
      });
      if (outcome.kind !== 'issued') throw new Error(JSON.stringify(outcome));
      const record = await ledger.find(csr.metadata.uid);
      if (record === undefined) throw new Error('there is no record');
      return record;
    },
  };
}
