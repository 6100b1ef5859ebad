import { globSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, test } from 'vitest';

const folder = resolve(import.meta.dirname, '../../../../lambdas/watch-relay');
/** Where the machine comes in: the wiring, the clock that is handed in, servers, which nothing waits for, and --probe, a process of its own. */
const wiring = new Set([
  'index.ts',
  'system-clock.ts',
  'probe-server.ts',
  'probe-client.ts',
  'server.ts',
  'connections.ts',
  'files.ts',
  'process-log.ts',
]);

const machine = new Set(['process', 'fetch', 'console', 'setTimeout', 'setInterval', 'setImmediate', 'performance']);
const machineCalls = new Set([
  'Date.now',
  'Math.random',
  'AbortSignal.timeout',
  'crypto.randomUUID',
  'crypto.randomBytes',
]);
const machineModules = /^node:(?!crypto$|util$)/;

function machineUse(file: string, text: string): string[] {
  const found: string[] = [];
  const { program } = parseSync(file, text);
  new Visitor({
    Identifier: ({ name }) => void (machine.has(name) && found.push(name)),
    ImportDeclaration: ({ source, specifiers }) => {
      if (machineModules.test(source.value)) found.push(source.value);
      for (const { local } of specifiers) if (local.name.startsWith('random')) found.push(local.name);
    },
    NewExpression: ({ callee, arguments: given }) =>
      void (callee.type === 'Identifier' && callee.name === 'Date' && given.length === 0 && found.push('new Date()')),
    MemberExpression: ({ object, property }) => {
      if (object.type !== 'Identifier' || property.type !== 'Identifier') return;
      const name = `${object.name}.${property.name}`;
      if (machineCalls.has(name)) found.push(name);
    },
  }).visit(program);
  return found;
}

test('time, chance and the environment reach the relay only as arguments', () => {
  const files = globSync('**/*.ts', { cwd: folder });
  expect(files.length).toBeGreaterThan(15);
  const found = files
    .filter((file) => !wiring.has(basename(file)))
    .map((file) => [file, machineUse(file, readFileSync(join(folder, file), 'utf8'))] as const);
  expect(found.filter(([, uses]) => uses.length > 0)).toEqual([]);
});

test.each([
  'const t = Date.now()',
  'const t = new Date()',
  'setTimeout(() => {}, 1)',
  'const v = process.env.X',
  'const s = AbortSignal.timeout(5)',
  "import { setTimeout as sleep } from 'node:timers/promises'",
  "import { randomUUID } from 'node:crypto'",
  'const r = Math.random()',
])('a planted %s is caught', (text) => {
  expect(machineUse('x.ts', text)).not.toEqual([]);
});
