/** Fields of stored records, and records made of them. */
import { isObject } from './json-object.ts';
import type { JsonObject } from './json-object.ts';

export type Plain = JsonObject;

/** Throws if the value is not what this program writes. */
export type Reader<T> = (value: unknown, name: string) => T;

/** An object with these fields; further ones are left out, absent ones stay absent. */
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

export function that<T>(holds: (value: unknown) => value is T): Reader<T> {
  return (value, name) => {
    if (!holds(value)) throw unreadable(name);
    return value;
  };
}

export const text = that((value) => typeof value === 'string');
export const flag = that((value) => typeof value === 'boolean');
export const integer = that((value): value is number => Number.isSafeInteger(value));
export const bytes = that((value) => value instanceof Uint8Array);

export function oneOf<const T extends string>(...values: readonly T[]): Reader<T> {
  return that((value): value is T => values.some((known) => known === value));
}

export function unreadable(name: string): TypeError {
  return new TypeError(`the stored ${name} cannot be read`);
}
