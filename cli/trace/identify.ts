/** Finds the UID of a request. */
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { readRequest } from './in-cluster.ts';
import { attempt, functions, plain, search, visit } from './reader.ts';
import type { Reader } from './reader.ts';

export type Subject = { readonly name: string } | { readonly uid: string } | { readonly serial: string };

interface Identified {
  readonly uid: string;
  readonly object?: JsonObject | undefined;
}

export async function identify(subject: Subject, reader: Reader): Promise<Identified | undefined> {
  if ('uid' in subject) return subject;
  if ('serial' in subject) {
    const { serial } = subject;
    const uid = await attempt(reader, 'the index of serial numbers', () => reader.open.findSerial(serial));
    return uid === undefined ? undefined : { uid };
  }
  const object = await visit(reader, (cluster) => readRequest(cluster, subject.name));
  const uid = objectOf(object?.['metadata'])['uid'];
  if (typeof uid === 'string' && plain.test(uid)) return { uid, object };
  const logged = await uidsNamed(subject.name, reader);
  if (logged.length > 1)
    throw new CommandFailure(
      exitCodes.usage,
      `the logs have ${logged.length} requests with this name`,
      `name one by its UID: ${logged.slice(0, 8).join(', ')}`,
    );
  return logged[0] === undefined ? undefined : { uid: logged[0] };
}

/** The request was deleted from the cluster, or the cluster cannot be read: the functions logged the name with the UID. */
async function uidsNamed(name: string, reader: Reader): Promise<readonly string[]> {
  if (!plain.test(name)) return [];
  const to = reader.io.now();
  const range = { from: to - reader.flags.sinceSeconds * 1_000, to };
  const found = await Promise.all(
    functions.map((of) => search(reader, { of, pattern: `{ $.name = "${name}" }`, ...range })),
  );
  const lines = found.flat().map(({ text }) => parsedObject(text) ?? {});
  const uids = lines.filter((line) => line['name'] === name).map((line) => line['uid']);
  return [...new Set(uids.filter((uid): uid is string => typeof uid === 'string' && plain.test(uid)))];
}
