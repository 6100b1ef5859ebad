/** The signatures in log files of a trail, as CloudTrail delivers them to S3. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import type { SignEvent } from '../../core/inventory/reconcile.ts';
import { signEventOf } from '../../core/inventory/sign-event.ts';
import { readBytes } from '../cluster/cluster-choice.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { filesIn } from './folder.ts';

/** CloudTrail's files have at most 50 MB. The bound is for files that were made to expand without end. */
const mostBytes = 256 * 1_048_576;
const expand = promisify(gunzip);

/**
 * Every .json and .json.gz file below the folder. A file that cannot be read ends the command: what it holds must not be taken for nothing.
 * https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
 */
export async function* signEventsIn(folder: string, io: Io): AsyncGenerator<SignEvent> {
  // A digest file has hashes of log files, and no events.
  const logs = await filesIn(
    folder,
    /^(?!.*CloudTrail-Digest).*\.json(\.gz)?$/s,
    '.json or .json.gz file of CloudTrail',
    io,
  );
  for (const file of logs) {
    const records = await recordsIn(file, io);
    try {
      for (const record of records) {
        const event = signEventOf(objectOf(record));
        if (event !== undefined) yield event;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new CommandFailure(exitCodes.configuration, `${file}: ${error.message}`);
    }
  }
}

async function recordsIn(file: string, io: Io): Promise<readonly unknown[]> {
  const bytes = await readBytes(file, io);
  const text = file.endsWith('.gz') ? await expanded(bytes, file) : bytes;
  const records = parsedObject(Buffer.from(text).toString('utf8'))?.['Records'];
  if (Array.isArray(records)) return records as readonly unknown[];
  throw new CommandFailure(exitCodes.configuration, `${file} is no log file of CloudTrail: it has no Records`);
}

async function expanded(bytes: Uint8Array, file: string): Promise<Uint8Array> {
  try {
    return await expand(bytes, { maxOutputLength: mostBytes });
  } catch {
    throw new CommandFailure(exitCodes.configuration, `${file} cannot be expanded`);
  }
}
