/** A valid request object with fields of any type and value, and its JSON text with any byte changed. */
import * as fc from 'fast-check';
import { refusalCodes } from '../../../../core/outcome/outcome.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { Ending, HostileCase } from '../../../corpus/hostile/case.ts';
import { approvedObject, bytesEvent, signEvent } from '../../../corpus/hostile/event.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Place = readonly (string | number)[];

export interface ObjectPlan {
  /** Which place, modulo their number. */
  readonly changes: readonly {
    readonly at: number;
    readonly action: 'replace' | 'remove' | 'rename' | 'add';
    readonly value: unknown;
    readonly key: string;
  }[];
  readonly bytes: readonly {
    readonly at: number;
    readonly value: number;
    readonly action: 'set' | 'insert' | 'remove';
  }[];
}

const { bytes: request } = makeRequest({ subject: { CN: 'hostile' } });

/** What programs have stumbled over, beside whatever JSON holds. */
const values = fc.oneof(
  fc.constantFrom<unknown[]>(
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    '',
    ' ',
    'True',
    'x'.repeat(10_000),
    [],
    [[]],
    {},
    { length: 1 },
    '__proto__',
  ),
  fc.constantFrom(
    'Approved',
    'Denied',
    'Failed',
    'client auth',
    'cert sign',
    'kubernetes.io/legacy-unknown',
    'kubernetes.io/kubelet-serving',
  ),
  fc.jsonValue(),
  fc.string({ unit: 'binary' }),
  fc.base64String(),
  fc.integer(),
  fc.double(),
);
const keys = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', 'toJSON', 'then', '', 'request', 'uid', 'status'),
  fc.string(),
);

export const objectPlanArbitrary: fc.Arbitrary<ObjectPlan> = fc.record({
  changes: fc.array(
    fc.record({
      at: fc.nat(1_000),
      action: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'rename', 'add'),
      value: values,
      key: keys,
    }),
    { minLength: 1, maxLength: 3 },
  ),
  bytes: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.record({ at: fc.nat(10_000), value: fc.nat(255), action: fc.constantFrom('set', 'insert', 'remove') }),
        { maxLength: 3 },
      ),
    },
  ),
});

let uids = 0;

/** The bytes of the body that the plan makes. */
function bodyOf({ changes, bytes }: ObjectPlan): Buffer {
  const object: Json = approvedObject({ uid: `object-${++uids}`, request });
  const text = JSON.stringify(changes.reduce<Json>(changed, object));
  return bytes.reduce((body, { at, value, action }) => {
    const index = at % Math.max(body.length, 1);
    const inserted = action === 'remove' ? [] : [value];
    return Buffer.concat([
      body.subarray(0, index),
      Buffer.from(inserted),
      body.subarray(action === 'insert' ? index : index + 1),
    ]);
  }, Buffer.from(text));
}

function changed(json: Json, { at, action, value, key }: ObjectPlan['changes'][number]): Json {
  const places = placesOf(json);
  const place = places[at % places.length] ?? [];
  return edited(json, place, action, value as Json, key);
}

function placesOf(json: Json, place: Place = []): Place[] {
  const children = isList(json) ? [...json.entries()] : isObject(json) ? Object.entries(json) : [];
  return [place, ...children.flatMap(([key, child]) => placesOf(child, [...place, key]))];
}

function edited(json: Json, [first, ...rest]: Place, action: string, value: Json, key: string): Json {
  if (first === undefined) {
    if (action === 'add' && isObject(json)) return Object.fromEntries([...Object.entries(json), [key, value]]);
    return action === 'replace' ? value : json;
  }
  if (isList(json)) {
    if (rest.length === 0 && action === 'remove') return json.filter((_, i) => i !== first);
    return json.map((child, i) => (i === first ? edited(child, rest, action, value, key) : child));
  }
  if (!isObject(json)) return json;
  return Object.fromEntries(
    Object.entries(json).flatMap(([name, child]) => {
      if (name !== first) return [[name, child]];
      if (rest.length > 0 || action === 'replace' || action === 'add')
        return [[name, edited(child, rest, action, value, key)]];
      return action === 'remove' ? [] : [[key, child]];
    }),
  );
}

function isList(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}

function isObject(json: Json): json is { readonly [key: string]: Json } {
  return typeof json === 'object' && json !== null && !isList(json);
}

const anything: readonly Ending[] = ['issued', 'ignored', 'invalid', ...refusalCodes];

export function objectPlanCase(id: string, plan: ObjectPlan): HostileCase {
  return {
    id,
    expected: anything,
    input: () => {
      const body = bodyOf(plan);
      // As API Gateway does it: text as text, other bytes in base64.
      const text = body.toString('utf8');
      return { event: Buffer.from(text).equals(body) ? signEvent(text) : bytesEvent(body) };
    },
  };
}
