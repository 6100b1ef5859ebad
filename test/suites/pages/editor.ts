/** An editor for `kubectl edit`: changes the ClusterConfiguration of kubeadm's ConfigMap. `node editor.ts CHANGES FILE` */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';

type Fields = Record<string, unknown>;

/** A value of undefined (JSON null) removes the key. */
function merge(into: Fields, changes: Fields): void {
  for (const [key, value] of Object.entries(changes)) {
    const old = into[key];
    if (value === null) delete into[key];
    else if (isFields(value) && isFields(old)) merge(old, value);
    else into[key] = value;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const [changes = '', file = ''] = process.argv.slice(2);
const object = parse(readFileSync(file, 'utf8')) as { data: Record<string, string> };
const configuration = parse(object.data['ClusterConfiguration'] ?? '') as Fields;
merge(configuration, parse(readFileSync(changes, 'utf8')) as Fields);
object.data['ClusterConfiguration'] = stringify(configuration);
writeFileSync(file, stringify(object));
