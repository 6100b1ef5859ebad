import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartFolder, chartReadme, describedSchema, documentedValues } from '../../../deploy/chart-reference.ts';
import type { Schema } from '../../../deploy/chart-reference.ts';

const read = (file: string): string => readFileSync(join(chartFolder, file), 'utf8');
const values = read('values.yaml');

test('README.md and the descriptions of the schema are those of values.yaml; npm run chart writes them', () => {
  expect(read('README.md')).toBe(chartReadme(values));
  const schema = JSON.parse(read('values.schema.json')) as Schema;
  // As text, since the order counts too.
  expect(JSON.stringify(describedSchema(schema, values))).toBe(JSON.stringify(schema));
});

test('every value and every part of it has a description, in values.yaml or in the schema', () => {
  const schema = JSON.parse(read('values.schema.json')) as Schema;
  const without: string[] = [];
  const known = new Set<string>();
  const walk = ({ properties = {}, items }: Schema, path: string): void => {
    for (const [key, child] of Object.entries(properties)) {
      const place = path === '' ? key : `${path}.${key}`;
      known.add(place);
      // The description of an object is that of its keys.
      if (child.description === undefined && child.properties === undefined) without.push(place);
      walk(child, place);
    }
    if (items !== undefined) walk(items, path);
  };
  walk(schema, '');
  expect(without).toEqual([]);
  expect(documentedValues(values).filter(({ path }) => !known.has(path))).toEqual([]);
});

test('every key of values.yaml that holds no others is in the reference, with its default', () => {
  const documented = new Map(documentedValues(values).map((each) => [each.path, each.value]));
  const missing: string[] = [];
  const walk = (part: unknown, path: string): void => {
    if (documented.has(path)) expect(documented.get(path), path).toEqual(part);
    const above = [...documented.keys()].some((each) => path.startsWith(`${each}.`));
    if (typeof part === 'object' && part !== null && !Array.isArray(part) && Object.keys(part).length > 0)
      for (const [key, child] of Object.entries(part)) walk(child, path === '' ? key : `${path}.${key}`);
    else if (!documented.has(path) && !(above && path.startsWith('resources.'))) missing.push(path);
  };
  walk(parse(values), '');
  expect(missing).toEqual([]);
});

test('a comment, a list in it, a section and a nested key are read', () => {
  const text = `# About the file.

## First

# One
# sentence: 
# - a
#   b
# - c
one: 1
two:
  three: [x]
  # Four.
  four: { five: 5 }
`;
  expect(documentedValues(text)).toEqual([
    { path: 'one', section: 'First', description: ['One sentence:', '- a b', '- c'], value: 1 },
    { path: 'two.four', section: 'First', description: ['Four.'], value: { five: 5 } },
  ]);
  expect(chartReadme(text)).toContain('| `one` | One sentence: <br>• a b <br>• c | `1` |\n');
});
