/** What lib/app.ts is to an operator, with functions that obey AWS_ENDPOINT_URL and its kind: an emulator needs those. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { createApplication } from '../../../lib/application.ts';
import { entries } from '../../../lib/functions.ts';

const file = process.env['COUNTERSIGN_CONFIG'] ?? '';
const parsed = parseConfiguration(readFileSync(file, 'utf8'), file, { toDeploy: true });
if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
createApplication({
  configuration: parsed.value.configuration,
  sources: { root: resolve(import.meta.dirname, '../../..'), entries, sourceMaps: false, emulatedAws: true },
}).synth();
