/** `npm run cli-docs`: writes the generated parts of docs/cli.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withReference } from './output/command-reference.ts';
import { countersignProgram } from './program.ts';
import { processIo } from './world.ts';

const page = join(import.meta.dirname, '../docs/cli.md');
writeFileSync(page, withReference(readFileSync(page, 'utf8'), await countersignProgram(processIo(), () => undefined)));
