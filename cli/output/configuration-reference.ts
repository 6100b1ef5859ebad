/** Every key of countersign.yaml as Markdown, generated from the schema: the last part of docs/configuration.md. */
import { configurationSchema } from '../../core/configuration/parse.ts';

/** The part of JSON Schema that the schema of countersign.yaml uses. */
interface Schema {
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

/** One table for each map of the file. */
export function configurationReference(): string {
  return sections('', configurationSchema()).join('\n');
}

function sections(path: string, schema: Schema): string[] {
  const rows: string[] = [];
  const below: string[] = [];
  const list = (prefix: string, { properties = {} }: Schema): void => {
    for (const [key, value] of Object.entries(properties)) {
      rows.push(row(`${prefix}${key}`, value));
      // `defaults` has the keys of a cluster, which are documented there.
      if (path === '' && key === 'defaults') continue;
      const named = typeof value.additionalProperties === 'object' ? value.additionalProperties : {};
      const here = `${path === '' ? '' : `${path}.`}${prefix}${key}`;
      if (named.properties !== undefined) below.push(...sections(`${here}.<name>`, named));
      if (value.items?.properties !== undefined) below.push(...sections(`${here}[]`, value.items));
      list(`${prefix}${key}.`, value);
    }
  };
  list('', schema);
  const title = path === '' ? 'The file' : `\`${path}\``;
  return [`### ${title}\n\n| key | value | meaning |\n|---|---|---|\n${rows.join('\n')}\n`, ...below];
}

function row(path: string, schema: Schema): string {
  const initial = schema.default === undefined ? '' : ` Default: \`${plain(schema.default)}\`.`;
  return `| \`${path}\` | ${typeText(schema)} | ${(schema.description ?? '').replaceAll('|', '\\|')}${initial} |`;
}

function typeText(schema: Schema): string {
  if (schema.const !== undefined) return `\`${plain(schema.const)}\``;
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeText).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (schema.items?.properties !== undefined) return 'list of maps, see below';
  if (schema.items !== undefined) return `list of ${schema.items.enum === undefined ? 'text' : typeText(schema.items)}`;
  if (typeof schema.additionalProperties === 'object') {
    const { properties, ...value } = schema.additionalProperties;
    return properties === undefined ? `map of names to ${typeText(value)}` : 'map of names, see below';
  }
  return { object: 'map', string: 'text', integer: 'whole number', boolean: 'true or false' }[schema.type ?? ''] ?? '';
}

function plain(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(', ') : String(value);
}
