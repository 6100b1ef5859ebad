/** The object that the JSON cases spoil, and how a spoilt one becomes a case. */
import { makeRequest } from '../../harness/x509/requests.ts';
import type { Ending, HostileCase } from './case.ts';
import { approvedObject, signEvent } from './event.ts';

export const request = makeRequest({ subject: { CN: 'hostile' } }).bytes;
let uids = 0;
export const object = () => approvedObject({ uid: `json-${++uids}`, request });
export const text = () => JSON.stringify(object());

type Json = Record<string, unknown>;

/** The object with one field replaced, the path dotted. `undefined` leaves it out. */
export function replaced(path: string, value: unknown, base: object = object()): Json {
  const copy = structuredClone(base) as Json;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const holder = names.reduce<Json>((inner, name) => inner[name] as Json, copy);
  if (value === undefined) delete holder[last];
  else holder[last] = value;
  return copy;
}

export const bodyCase = (id: string, expected: Ending | readonly Ending[], body: () => unknown): HostileCase => ({
  id: `json/${id}`,
  expected: typeof expected === 'string' ? [expected] : expected,
  input: () => ({ event: signEvent(body()) }),
});
