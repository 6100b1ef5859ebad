/**
 * The map of docs/architecture.md, kept true: rooms, directions, circles. Imports are read with a parser, dynamic ones
 * included: a barrel that also exported infrastructure once made a 356 KB bundle 40 MB.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { expect, test } from 'vitest';
import { circles, filesImported, read, root, violations } from './imports.ts';
import { mostFiles, rooms, tree } from './rooms.ts';
import { mostTestFiles, testRoomTable, testRooms } from './test-rooms.ts';

const files = globSync('{core,adapters,lambdas,lib,kubelet-authenticator,cli,dev,acceptance}/**/*.ts', { cwd: root });
const sources = files.map((file) => read(file, readFileSync(join(root, file), 'utf8')));

test('every import points the way the architecture says', () => {
  expect(files.length).toBeGreaterThan(10);
  expect(sources.flatMap(violations)).toEqual([]);
});

test.each([
  ['core/issue.ts', `import '../adapters/x.ts'`],
  ['core/issue.ts', `import fs from 'node:fs'`],
  ['core/issue.ts', `const x = await import('undici')`],
  ['core/issue.ts', `export * from 'yaml'`],
  ['core/issue.ts', `const t = Date.now()`],
  ['core/issue.ts', `const t = new Date()`],
  ['core/issue.ts', `const v = process.env.X`],
  ['adapters/embedded/ledger.ts', `import '../kubernetes/api.ts'`],
  ['adapters/embedded/ledger.ts', `import '@kubernetes/client-node'`],
  ['adapters/dynamodb/ledger.ts', `import '@aws-sdk/client-kms'`],
  ['adapters/lambda/http.ts', `import '@aws-sdk/client-kms'`],
  ['core/issue.ts', `import '@aws-sdk/client-kms'`],
  ['adapters/signing-api/client.ts', `import('@aws-sdk/credential-providers')`],
  ['lambdas/authorizer/authorizer.ts', `import { jwtVerify } from 'jose'`],
  ['lambdas/sign/handler.ts', `import 'jose'`],
  ['lambdas/sign/handler.ts', `import '../watch-relay/relay.ts'`],
  ['lambdas/sign/index.ts', `import '@aws-sdk/client-iam'`],
  ['lambdas/sign/handler.ts', `import '../../lib/stack.ts'`],
  ['cli/commands/ca.ts', `import '../../lambdas/sign/handler.ts'`],
  ['cli/commands/ca.ts', `import '../../lib/application.ts'`],
  ['cli/start/dev.ts', `await import('../../dev/serve/dev-server.ts')`],
  ['cli/world.ts', `await import('../dev/demo/stack.ts')`],
  ['kubelet-authenticator/main.ts', `import '@kubernetes/client-node'`],
  ['kubelet-authenticator/credential/obtain.ts', `await import('@aws-sdk/client-sts')`],
  ['kubelet-authenticator/credential/obtain.ts', `import '../../cli/commands/ca.ts'`],
  ['kubelet-authenticator/main.ts', `import 'yaml'`],
  ['lib/application.ts', `import '../lambdas/sign/handler.ts'`],
  ['lib/application.ts', `import '../adapters/aws/kms-signer.ts'`],
  ['lib/application.ts', `import '@aws-sdk/client-kms'`],
])('a planted violation in %s is caught: %s', (file, text) => {
  expect(violations(read(file, text))).toHaveLength(1);
});

test('a room imports itself and the rooms below it: planted violations are caught', () => {
  for (const [index, room] of rooms.entries()) {
    const above = rooms.slice(0, index).findLast(({ path }) => part(path) === part(room.path));
    if (above === undefined) continue;
    const planted = { file: `${room.path}/planted.ts`, imports: [toward(room.path, above.path)], world: [] };
    expect(violations(planted), `${room.path} imports ${above.path}`).toHaveLength(1);
  }
});

test('every source file is in a room of the map, and a room has about a dozen files', () => {
  const known = new Set(rooms.map(({ path }) => path));
  expect(files.filter((file) => !known.has(dirname(file)))).toEqual([]);
  for (const { path } of rooms) {
    const own = files.filter((file) => dirname(file) === path);
    expect(own.length, path).toBeGreaterThan(0);
    expect(own.length, path).toBeLessThanOrEqual(mostFiles);
  }
});

test('no file imports itself by way of others, types included', () => {
  const graph = new Map(sources.map((source) => [source.file, filesImported(source)]));
  expect(circles(graph)).toEqual([]);
  const [first = '', second = ''] = filesImported(sources.find(({ file }) => file === 'core/issue.ts') ?? sources[0]!);
  const withCircle = new Map([...graph, [second, [first]], [first, ['core/issue.ts', second]]]);
  expect(circles(withCircle)).toHaveLength(1);
});

test('docs/architecture.md shows this map', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  expect(page).toContain(`\`\`\`\n${tree()}\n\`\`\``);
});

test('each folder of tests is on the map that test/README.md shows, and has about a dozen files', () => {
  const testFiles = globSync('test/**/*.ts', { cwd: root });
  const folders = testFiles.map((file) => /^test\/((?:suites|harness)\/[^/]+)\//.exec(file)?.[1] ?? '');
  expect(new Set(folders.filter((folder) => folder !== ''))).toEqual(new Set(Object.keys(testRooms)));
  expect(testFiles.filter((file) => /^test\/(?:suites|harness)\/[^/]+$/.test(file))).toEqual([]);
  const counts = Map.groupBy(testFiles, dirname);
  expect([...counts].filter(([, files]) => files.length > mostTestFiles).map(([folder]) => folder)).toEqual([]);
  expect(readFileSync(join(root, 'test/README.md'), 'utf8')).toContain(testRoomTable());
});

/** Services do not know one another, so each is a part of its own. */
function part(path: string): string {
  return path
    .split('/')
    .slice(0, path.startsWith('lambdas/') ? 2 : 1)
    .join('/');
}

function toward(from: string, to: string): string {
  return `${from
    .split('/')
    .map(() => '..')
    .join('/')}/${to}/planted.ts`;
}

test('the tree holds no folder or file that the map does not know', () => {
  const known =
    /^(core|adapters|lambdas|lib|kubelet-authenticator|cli|dev|acceptance|deploy|docs|examples|bench|test|\.ci|\.github)\//;
  const entries = globSync('*/**/*', {
    cwd: root,
    exclude: (name) => ['node_modules', '.git', 'cdk.out', 'dist'].includes(name),
  });
  expect(entries.filter((name) => !known.test(`${name}/`))).toEqual([]);
  expect(entries.filter((name) => /(^|\/)(utils?|helpers?|common|misc)(\/|\.ts$)/.test(name))).toEqual([]);
});

test('no source file is longer than an auditor reads in one sitting', () => {
  const long = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 400);
  expect(long).toEqual([]);
});

/** Barrels hide what is imported; an `index.ts` is allowed only where a service is wired. */
test('there are no barrels', () => {
  expect(files.filter((file) => file.endsWith('index.ts') && !/^lambdas\/[^/]+\/index\.ts$/.test(file))).toEqual([]);
});

/** An auditor follows core/ in one direction. */
test('core/issue.ts pulls in neither the YAML parser nor the schema library', () => {
  const byFile = new Map(sources.map((source) => [source.file, source]));
  const runtime = new Set<string>();
  const walk = (file: string) => {
    if (runtime.has(file)) return;
    runtime.add(file);
    const { program } = parseSync(file, readFileSync(join(root, file), 'utf8'));
    for (const node of program.body) {
      if (node.type !== 'ImportDeclaration' || node.importKind === 'type') continue;
      if (node.source.value.startsWith('.')) walk(join(dirname(file), node.source.value));
      else runtime.add(node.source.value);
    }
  };
  walk('core/issue.ts');
  expect(byFile.has('core/issue.ts')).toBe(true);
  expect([...runtime].filter((name) => name === 'yaml' || name === 'zod')).toEqual([]);
  expect([...runtime]).toContain('node:crypto');
});
