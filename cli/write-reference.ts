/** `npm run cli-docs`: writes the generated parts of docs/cli.md, and the schema beside the examples. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationSchema } from '../core/configuration/parse.ts';
import { withReference } from './output/command-reference.ts';
import { json } from './output/output.ts';
import { countersignProgram } from './program.ts';
import { processIo } from './world.ts';

const page = join(import.meta.dirname, '../docs/cli.md');
writeFileSync(page, withReference(readFileSync(page, 'utf8'), await countersignProgram(processIo(), () => undefined)));
writeFileSync(join(import.meta.dirname, '../examples/countersign.schema.json'), json(configurationSchema()));
