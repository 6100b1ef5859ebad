/** Which cluster's revocations a command works on. */
import { awsFailure } from '../aws/aws-failure.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenRevocations, RevocationsPlace } from '../runtime/io.ts';

export interface PlaceFlags {
  readonly cluster?: string;
  readonly data?: string;
  readonly region?: string;
  readonly function?: string;
}

function placeOf(flags: PlaceFlags, io: Io): RevocationsPlace {
  if (flags.data !== undefined) return { kind: 'embedded', folder: flags.data };
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (cluster !== undefined) return { kind: 'deployed', cluster, region: flags.region, function: flags.function };
  throw new CommandFailure(
    exitCodes.usage,
    'which cluster? --cluster names a deployed one, --data a folder of this machine',
  );
}

export async function withRevocations<T>(
  flags: PlaceFlags,
  io: Io,
  work: (open: OpenRevocations) => Promise<T>,
): Promise<T> {
  const place = placeOf(flags, io);
  const open = await io.openRevocations(place);
  try {
    return await work(open);
  } catch (error) {
    // For an unreadable record or a bug, trying again does not help.
    if (place.kind === 'embedded' || error instanceof TypeError || error instanceof RangeError) throw error;
    throw awsFailure('DynamoDB', error);
  } finally {
    open.close();
  }
}

export function placeText(flags: PlaceFlags, io: Io): string {
  const place = placeOf(flags, io);
  return place.kind === 'embedded' ? `folder ${place.folder}` : `cluster ${place.cluster}`;
}
