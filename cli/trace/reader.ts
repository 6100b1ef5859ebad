/** Reads one source after the other. A source that cannot be read is named, and does not end the command. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { CommandFailure } from '../runtime/exit.ts';
import type { Io, LogFindings, LogSearch, OpenTrace } from '../runtime/io.ts';

export interface Unread {
  readonly what: string;
  readonly why: string;
  /** What to do: the permission that is missing. */
  readonly hint?: string;
}

export interface TraceFlags extends ClusterAccessFlags {
  /** How far back to look for a request of which only the name is known. */
  readonly sinceSeconds: number;
}

export interface Reader {
  readonly open: OpenTrace;
  readonly io: Io;
  readonly flags: TraceFlags;
  readonly unread: Unread[];
  /** The cluster did not answer once, so it is not called again. */
  withoutCluster: boolean;
}

export async function attempt<T>({ unread }: Reader, what: string, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) throw error;
    const { hint } = error instanceof CommandFailure ? error : { hint: undefined };
    const entry = { what, why: errorMessage(error), ...(hint === undefined ? {} : { hint }) };
    // The log of one function is searched several times.
    if (!unread.some(({ what: known, why }) => known === what && why === entry.why)) unread.push(entry);
    return undefined;
  }
}

export function visit<T>(reader: Reader, work: (cluster: ClusterConnection) => Promise<T>): Promise<T | undefined> {
  if (reader.withoutCluster) return Promise.resolve(undefined);
  return attempt(reader, 'the cluster', async () => {
    try {
      return await withCluster(reader.flags, reader.io, work);
    } catch (error) {
      reader.withoutCluster = true;
      throw error;
    }
  });
}

export const functions = ['attest', 'sign'] as const;

export async function search(reader: Reader, wanted: LogSearch): Promise<LogFindings['lines']> {
  const what = `the log of the ${wanted.of} function`;
  const found = await attempt(reader, what, () => reader.open.searchLog(wanted));
  if (found?.endedEarly !== undefined) reader.unread.push({ what, why: `the search ended ${found.endedEarly}` });
  return found?.lines ?? [];
}

/** Values that both the functions' logs and the filter patterns hold unchanged. */
export const plain = /^[A-Za-z0-9./_:-]{1,571}$/;
