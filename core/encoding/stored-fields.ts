/** Fields of stored records. Each function throws if the field is not what this program writes. */
export type Plain = Readonly<Record<string, unknown>>;

/** Absent stays absent; present it must be of its type. */
export function optional<Name extends string, T>(
  name: Name,
  read: (plain: Plain, name: string) => T,
  plain: Plain,
): { readonly [each in Name]?: T } {
  return (plain[name] === undefined ? {} : { [name]: read(plain, name) }) as { readonly [each in Name]?: T };
}

export function oneOf<const T extends string>(plain: Plain, name: string, values: readonly T[]): T {
  const found = values.find((value) => value === plain[name]);
  if (found === undefined) throw unreadable(name);
  return found;
}

export function text(plain: Plain, name: string): string {
  const value = plain[name];
  if (typeof value !== 'string') throw unreadable(name);
  return value;
}

export function texts(plain: Plain, name: string): readonly string[] {
  const values = list(plain, name);
  if (!values.every((value) => typeof value === 'string')) throw unreadable(name);
  return values;
}

export function integer(plain: Plain, name: string): number {
  const value = plain[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw unreadable(name);
  return value;
}

export function flag(plain: Plain, name: string): boolean {
  const value = plain[name];
  if (typeof value !== 'boolean') throw unreadable(name);
  return value;
}

export function list(plain: Plain, name: string): readonly unknown[] {
  const value = plain[name];
  if (!Array.isArray(value)) throw unreadable(name);
  return value as readonly unknown[];
}

export function object(value: unknown, name: string): Plain {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable(name);
  return value as Plain;
}

export function unreadable(name: string): TypeError {
  return new TypeError(`the stored ${name} cannot be read`);
}

export function bytes(plain: Plain, name: string): Uint8Array {
  const value = plain[name];
  if (!(value instanceof Uint8Array)) throw unreadable(name);
  return value;
}
