/** Readers that check the fields of stored records. */
import { isObject } from './json-object.ts';
import type { JsonObject } from './json-object.ts';

/** The fields of a record before they are checked. */
export type StoredFields = JsonObject;

/** Returns the checked value. Throws if this program does not write such a value. */
export type Reader<T> = (value: unknown, name: string) => T;

/** Reads an object with these fields. Other fields are dropped; absent optional fields stay absent. */
export function object<T>(readers: { readonly [Name in keyof T]-?: Reader<T[Name]> }): (
  value: unknown,
  name?: string,
) => T {
  return (value, name = 'record') => {
    if (!isObject(value)) throw unreadable(name);
    const fields = Object.entries<Reader<unknown>>(readers).map(([key, read]) => [key, read(value[key], key)] as const);
    return Object.fromEntries(fields.filter(([, field]) => field !== undefined)) as T;
  };
}

export function optional<T>(read: Reader<T>): Reader<T | undefined> {
  return (value, name) => (value === undefined ? undefined : read(value, name));
}

export function listOf<T>(read: Reader<T>): Reader<readonly T[]> {
  return (value, name) => {
    if (!Array.isArray(value)) throw unreadable(name);
    return value.map((each) => read(each, name));
  };
}

export function checkedBy<T>(holds: (value: unknown) => value is T): Reader<T> {
  return (value, name) => {
    if (!holds(value)) throw unreadable(name);
    return value;
  };
}

export const text = checkedBy((value) => typeof value === 'string');
export const flag = checkedBy((value) => typeof value === 'boolean');
export const integer = checkedBy((value): value is number => Number.isSafeInteger(value));
export const bytes = checkedBy((value) => value instanceof Uint8Array);

export function oneOf<const T extends string>(...values: readonly T[]): Reader<T> {
  return checkedBy((value): value is T => values.some((known) => known === value));
}

export function unreadable(name: string): TypeError {
  return new TypeError(`the stored ${name} cannot be read`);
}
