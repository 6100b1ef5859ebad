import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { bundleAccess } from '../../../../core/configuration/bundled-configuration.ts';
import { usableAccess } from '../../../../lambdas/authorizer/env.ts';
import { access, eventOf, signPath } from './case.ts';
import { audience, cluster, issuer, makeToken, subject } from './tokens.ts';

const { jwt } = access;

test('the bundled access rules are the ones in use', () => {
  expect(usableAccess(bundleAccess(access))).toEqual(access);
});

test.each<[string, unknown]>([
  ['no text', undefined],
  ['no JSON', '{'],
  ['null', null],
  ['a list', []],
  ['no cluster', { jwt }],
  ['an empty cluster', { cluster: '', jwt }],
  ['no rules', { cluster }],
  ['no issuer', { cluster, jwt: { audience, subjects: [subject] } }],
  ['an issuer without TLS', { cluster, jwt: { ...jwt, issuer: 'http://issuer.example' } }],
  ['no audience', { cluster, jwt: { issuer, subjects: [subject] } }],
  ['an empty audience', { cluster, jwt: { ...jwt, audience: '' } }],
  ['no subjects', { cluster, jwt: { issuer, audience } }],
  ['an empty list of subjects', { cluster, jwt: { ...jwt, subjects: [] } }],
  ['a subject that is text alone', { cluster, jwt: { ...jwt, subjects: subject } }],
  ['an empty subject', { cluster, jwt: { ...jwt, subjects: [subject, ''] } }],
])('%s is no configuration', (_, value) => {
  expect(
    usableAccess(typeof value === 'string' || value === undefined ? value : JSON.stringify(value)),
  ).toBeUndefined();
});

/** As lib/ makes it: one CJS file with the rules in it. */
async function bundle(define: Record<string, string>): Promise<string> {
  const result = await build({
    entryPoints: [join(import.meta.dirname, '../../../../lambdas/authorizer/index.ts')],
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    mainFields: ['module', 'main'],
    write: false,
    define,
  });
  return result.outputFiles[0]!.text;
}

/** The handler's answer and what it logged, in a process of its own. */
function run(code: string, event: unknown): { answer: unknown; log: Record<string, unknown> } {
  const call = `module.exports.handler(${JSON.stringify(event)}).then((answer) => console.log(JSON.stringify(answer)))`;
  const output = execFileSync(process.execPath, ['--input-type=commonjs'], { input: `${code}\n;${call}`, env: {} });
  const [log = '', answer = ''] = output.toString().trim().split('\n');
  return { answer: JSON.parse(answer), log: JSON.parse(log) as Record<string, unknown> };
}

test('in a bundle the rules are those it was made with, and without rules every caller is refused', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const token = makeToken({ claims: { iat: now, nbf: now, exp: now + 600 } });
  const made = await bundle({ __COUNTERSIGN_CLUSTER__: JSON.stringify(bundleAccess(access)) });
  expect(run(made, eventOf(token))).toMatchObject({
    answer: { isAuthorized: true, context: { cluster, subject } },
    log: { level: 'info', authorized: true, subject },
  });
  expect(run(made, eventOf(token, { rawPath: signPath.replace(cluster, 'test') })).answer).toEqual({
    isAuthorized: false,
  });
  const empty = await bundle({});
  expect(run(empty, eventOf(token))).toMatchObject({
    answer: { isAuthorized: false },
    log: { level: 'error', reason: 'NotConfigured' },
  });
  // Who may come in is nothing that the environment or another function's rules bring along.
  expect(empty).not.toMatch(/@aws-sdk|yaml|zod/);
});
