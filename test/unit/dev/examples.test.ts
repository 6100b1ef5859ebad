import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { render, renderedExamples } from '../../../dev/examples/render.ts';

const root = resolve(import.meta.dirname, '../../..');
const source = join(root, 'examples/source');
const rendered = renderedExamples();

test.each(rendered.map(({ path, text }) => [relative(root, path), text]))(
  '%s is what `npm run examples` writes',
  (path, text) => {
    const now = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : '';
    expect(now, `${path} differs from examples/source: change the source and run npm run examples`).toBe(text);
  },
);

test('every file and every value of the source is in an example', () => {
  expect(rendered.length).toBeGreaterThan(8);
  const templates = globSync('{files,templates/*}/*', { cwd: source }).map((path) =>
    readFileSync(join(source, path), 'utf8'),
  );
  const used = new Set(
    templates.flatMap((text) => [...text.matchAll(/%\{(?:include )?([^}]*)\}/g)].map(([, name]) => name)),
  );
  const files = globSync('*', { cwd: join(source, 'files') });
  const values = [...readFileSync(join(source, 'values.yaml'), 'utf8').matchAll(/^(\w+):/gm)].map(([, name]) => name);
  expect([...files, ...values].filter((name) => !used.has(name))).toEqual([]);
});

test('a file is included with the indentation of its line, an unknown name is an error', () => {
  const from = { values: { name: 'prod' }, file: () => 'a: %{name}\n\nb:\n  c\n' };
  expect(render('x: |\n  %{include f}\ny: %{name}\n', from)).toBe('x: |\n  a: prod\n\n  b:\n    c\ny: prod\n');
  expect(() => render('%{gone}', from)).toThrow('values.yaml has no text for gone');
});
