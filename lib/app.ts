/** The program that `npm run cdk` runs: it reads countersign.yaml and writes templates. It calls no service and needs no credentials. */
import { readFileSync } from 'node:fs';
import { parseConfiguration } from '../core/configuration/parse.ts';
import type { Problem } from '../core/configuration/problem-list.ts';
import { createApplication } from './application.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

/** In the format of compilers. */
function problemText({ file, line, column, path, message }: Problem): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}\n`;
}

function fail(text: string): never {
  process.stderr.write(text);
  process.exit(3);
}

const file = process.env['COUNTERSIGN_CONFIG'] || fail('COUNTERSIGN_CONFIG names no file; npm run cdk sets it\n');
let text: string;
try {
  text = readFileSync(file, 'utf8');
} catch (error) {
  fail(`${file} cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : String(error)})\n`);
}
const parsed = parseConfiguration(text, file, { toDeploy: true });
if (!parsed.ok) fail(parsed.problem.map(problemText).join(''));
process.stderr.write(parsed.value.warnings.map((warning) => `warning: ${problemText(warning)}`).join(''));

try {
  createApplication({ configuration: parsed.value.configuration }).synth();
} catch (error) {
  // The message says what is wrong; a stack trace of CDK does not help the operator.
  fail(`${errorMessage(error)}\n`);
}
