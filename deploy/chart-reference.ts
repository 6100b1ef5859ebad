/**
 * `npm run chart`: writes the reference of the chart's values from the comments of values.yaml: the table in deploy/chart/README.md and the
 * descriptions in values.schema.json, which editors show. A comment describes the key below it; `##` begins a section.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

export const chartFolder = resolve(import.meta.dirname, 'chart');

export interface DocumentedValue {
  /** Keys from the top, joined with dots. */
  readonly path: string;
  readonly section: string;
  /** Lines of the comment; a line that begins with `- ` is an item of a list. */
  readonly description: readonly string[];
  readonly value: unknown;
}

/** The keys that have a comment, in their order. */
export function documentedValues(text: string): readonly DocumentedValue[] {
  const values = parse(text) as unknown;
  const found: DocumentedValue[] = [];
  let section = '';
  let comment: string[] = [];
  let parents: string[] = [];
  for (const line of text.split('\n')) {
    const [, title] = /^## (.+)$/.exec(line) ?? [];
    const [, remark] = /^ *# (.*)$/.exec(line) ?? [];
    const [, indent = '', key] = /^((?: {2})*)(\w+):/.exec(line) ?? [];
    if (title !== undefined) section = title;
    else if (remark !== undefined) {
      comment.push(remark);
      continue;
    } else if (key !== undefined) {
      parents = [...parents.slice(0, indent.length / 2), key];
      if (comment.length > 0)
        found.push({ path: parents.join('.'), section, description: sentences(comment), value: at(values, parents) });
    }
    comment = [];
  }
  return found;
}

/** One line for the text, and one for each item of a list in it. */
function sentences(comment: readonly string[]): string[] {
  const lines: string[] = [];
  for (const line of comment)
    if (lines.length === 0 || line.startsWith('- ')) lines.push(line.trim());
    else lines.push(`${lines.pop()} ${line.trim()}`);
  return lines;
}

function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce((part, key) => (part as Record<string, unknown>)[key], value);
}

/** The part of JSON Schema that values.schema.json nests. */
export interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly [key: string]: unknown;
}

/** The schema with the descriptions of values.yaml, and its properties in the order of values.yaml. */
export function describedSchema(schema: Schema, text: string): Schema {
  const descriptions = new Map(documentedValues(text).map(({ path, description }) => [path, description.join('\n')]));
  const describe = (part: Schema, path: readonly string[], value: unknown): Schema => {
    const { description: own, properties, ...rest } = part;
    const description = descriptions.get(path.join('.')) ?? own;
    const order = Object.keys(value ?? {});
    const rank = (key: string): number => (order.includes(key) ? order.indexOf(key) : -1);
    const children = Object.entries(properties ?? {}).toSorted(([a], [b]) => rank(a) - rank(b));
    return {
      ...(description === undefined ? {} : { description }),
      ...rest,
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              children.map(([key, child]) => [
                key,
                describe(child, [...path, key], (value as Record<string, unknown> | undefined)?.[key]),
              ]),
            ),
          }),
    };
  };
  return describe(schema, [], parse(text));
}

const longestDefault = 60;

function row({ path, description, value }: DocumentedValue, all: readonly DocumentedValue[]): string {
  const cell = description
    .map((line) => line.replaceAll('|', '\\|').replaceAll('<', '&lt;').replace(/^- /, '<br>• '))
    .join(' ')
    .replaceAll(/\bdocs\/[a-z-]+\.md\b/g, '[$&](../../$&)');
  const json = JSON.stringify(value);
  const parent = all.some((other) => other.path.startsWith(`${path}.`));
  const given = parent ? '' : json.length > longestDefault ? '[values.yaml](values.yaml)' : `\`${json}\``;
  return `| \`${path}\` | ${cell} | ${given} |`;
}

/** deploy/chart/README.md. */
export function chartReadme(text: string): string {
  const values = documentedValues(text);
  const sections = [...new Set(values.map(({ section }) => section))];
  const tables = sections.map(
    (section) => `### ${section}

| value | what it does | default |
|---|---|---|
${values
  .filter((value) => value.section === section)
  .map((value) => row(value, values))
  .join('\n')}
`,
  );
  return `${intro}\n${tables.join('\n')}`;
}

const intro = `<!-- Written by \`npm run chart\` from values.yaml; changes belong there or into deploy/chart-reference.ts. -->

# countersign-watch-relay

The chart installs the [watch-relay](../../docs/watch-relay.md) of Countersign: it forwards approved CertificateSigningRequests to the signing endpoint and writes
the certificates back. The relay holds no key. [docs/deploy.md](../../docs/deploy.md) describes the whole way; this page is the reference of the values.

## Install

\`\`\`sh
countersign relay values --config countersign.yaml --image REGISTRY/countersign/watch-relay@sha256:… > relay-values.yaml
kubectl create namespace countersign-system
kubectl label namespace countersign-system pod-security.kubernetes.io/enforce=restricted
helm upgrade --install countersign-watch-relay deploy/chart -n countersign-system -f relay-values.yaml
helm test countersign-watch-relay -n countersign-system --logs
\`\`\`

The [examples](examples) have values for each way to log in. \`helm template … --skip-tests\` prints the objects without those of \`helm test\`.

- **Least privilege.** RBAC names the signers, and permits approvals only for the signers that the relay approves. The pods run as an unprivileged user on a
  read-only root, with no capabilities, behind a NetworkPolicy, in a namespace of level \`restricted\`. Only
  \`hostNetwork\`, \`networkPolicy.enabled\` and \`serviceAccount.automountServiceAccountToken\` weaken this.
- **What is missing on purpose.** There are no values for extra arguments, variables, volumes, containers and security contexts: a user who may set the values
  of a release can only choose among what a reviewer of the chart has seen. The schema refuses unknown keys.
- **Without cluster-wide permissions.** With \`rbac.create: false\` and \`serviceAccount.create: false\` a cluster administrator creates those objects first:
  [Without the chart's permissions](../../docs/watch-relay.md#without-the-charts-permissions).
- **Uninstall.** \`helm uninstall\` removes all objects except the Lease, objects of \`trustBundles\`, and the pod of a failed \`helm test\`. Certificates stay valid.

## Values

Where a value does the same as in the charts of cert-manager and external-dns, it has the same name. Only \`image.repository\`, \`endpoint.url\`, \`endpoint.cluster\`,
\`auth.method\` and the values of that method are required; the chart's error names one that is missing.
`;

if (import.meta.main) {
  const text = readFileSync(join(chartFolder, 'values.yaml'), 'utf8');
  const path = join(chartFolder, 'values.schema.json');
  const schema = JSON.parse(readFileSync(path, 'utf8')) as Schema;
  writeFileSync(path, `${JSON.stringify(describedSchema(schema, text), null, 2)}\n`);
  writeFileSync(join(chartFolder, 'README.md'), chartReadme(text));
}
