/** The path of the first difference between two JSON values; `undefined` if they are equal. The order of keys does not count. */
export function difference(expected: unknown, found: unknown, path = ''): string | undefined {
  const where = path === '' ? 'the object' : path;
  if (!isContainer(expected) || !isContainer(found) || Array.isArray(expected) !== Array.isArray(found))
    return Object.is(expected, found) ? undefined : `${where} was ${shown(expected)}, the answer has ${shown(found)}`;
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const inner = path === '' ? key : `${path}.${key}`;
    if (!Object.hasOwn(found, key)) return `${inner} is missing`;
    if (!Object.hasOwn(expected, key)) return `${inner} was added`;
    const different = difference(expected[key], found[key], inner);
    if (different !== undefined) return different;
  }
  return undefined;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
