/** `npm run api`: writes the properties of the constructs, and the reference of docs/constructs.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apiReference } from './api-reference.ts';
import { propsFiles } from './props-text.ts';

for (const [name, text] of propsFiles()) writeFileSync(join(import.meta.dirname, name), text);
// Then, since the reference describes them.
const page = resolve(import.meta.dirname, '../../docs/constructs.md');
const [head = ''] = readFileSync(page, 'utf8').split(/(?<=^## Reference\n)/m);
writeFileSync(page, `${head}\n${apiReference(resolve(import.meta.dirname, '../constructs.ts'))}`);
