/**
 * The examples of joining machines, from one source: examples/source/README.md describes it. Scripts and units are in several manifests,
 * and an operator who compares two of them must find the same text.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';

const examples = resolve(import.meta.dirname, '../../examples');
const source = join(examples, 'source');

export interface Example {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
}

export interface Source {
  /** Of values.yaml. */
  readonly values: Readonly<Record<string, string>>;
  /** The text of a file of `files/`. Throws if there is none. */
  readonly file: (name: string) => string;
}

/** All of them, in the order of their paths. */
export function renderedExamples(): readonly Example[] {
  const templates = join(source, 'templates');
  const read = readBoundedDocument(readFileSync(join(source, 'values.yaml'), 'utf8'));
  if (!read.ok) throw new Error(`values.yaml: ${read.problem}`);
  const values = read.value as Source['values'];
  const file = (name: string): string => readFileSync(join(source, 'files', name), 'utf8');
  return globSync('*/*', { cwd: templates })
    .toSorted()
    .map((path) => ({
      path: join(examples, path),
      text: render(readFileSync(join(templates, path), 'utf8'), { values, file }),
    }));
}

/**
 * `%{include NAME}` alone on a line is replaced by that file, with the line's indentation; `%{name}` by a value. Included files are
 * rendered in the same way. Throws if a name is unknown.
 */
export function render(template: string, from: Source): string {
  const included = template.replaceAll(/^( *)%\{include ([\w.-]+)\}$/gm, (_, indentation: string, name: string) =>
    indented(render(from.file(name), from).trimEnd(), indentation),
  );
  return included.replaceAll(/%\{([^}]*)\}/g, (_, name: string) => {
    const value = from.values[name];
    if (typeof value !== 'string') throw new Error(`values.yaml has no text for ${name}`);
    return value;
  });
}

/** Empty lines stay empty, as prettier wants them. */
function indented(text: string, indentation: string): string {
  return text.replaceAll(/^(?=.)/gm, indentation);
}
