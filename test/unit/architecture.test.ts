/**
 * The import rule and the folder map of docs/architecture.md, kept true. Imports are read with a real parser, dynamic
 * ones included: a barrel that also exported infrastructure once made a 356 KB bundle 40 MB.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { globSync } from 'node:fs';
import { parseSync, Visitor } from 'oxc-parser';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** What each part may import: own folders by prefix, packages by name; `node:` alone allows all of Node. */
const rules: Readonly<Record<string, { own: readonly string[]; packages: readonly string[] }>> = {
  core: { own: ['core/'], packages: ['node:crypto'] },
  adapters: { own: ['core/'], packages: ['node:'] },
  lambdas: {
    own: ['core/', 'adapters/'],
    packages: [
      'node:',
      'prom-client',
      'pino',
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-kms',
      '@aws-sdk/client-lambda',
    ],
  },
  cli: {
    own: ['cli/', 'core/', 'adapters/'],
    packages: ['node:', 'commander', 'yaml', '@aws-sdk/client-dynamodb', '@aws-sdk/client-lambda'],
  },
  // On the node, where what is not loaded cannot be attacked either: no AWS SDK, no Kubernetes client.
  'kubelet-authenticator': { own: ['kubelet-authenticator/', 'core/', 'adapters/'], packages: ['node:'] },
  // Of adapters and services only what the infrastructure and they must call alike: a handler pulled in here would run
  // at synthesis, and one that pulls this in would be forty times its size.
  lib: {
    own: [
      'lib/',
      'core/',
      'lambdas/attest/env.ts',
      'lambdas/sign/env.ts',
      'adapters/dynamodb-table.ts',
      'adapters/region-certificates.ts',
    ],
    packages: ['node:', 'aws-cdk-lib', 'aws-cdk-lib/', 'constructs', 'cdk-nag', 'esbuild'],
  },
  dev: { own: ['dev/', 'core/', 'adapters/', 'lambdas/', 'cli/'], packages: ['node:', 'pino'] },
};
/** Libraries made for one file's outside system or format, and allowed nowhere else. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'core/configuration.ts': ['yaml', 'zod'],
  'core/attestation-schema.ts': ['zod'],
  'core/bounded-document.ts': ['yaml'],
  'core/attestation/cms.ts': ['asn1js'],
  'core/configuration-schema.ts': ['zod'],
  'core/deployment-schema.ts': ['zod'],
  'adapters/kubernetes-api.ts': ['@kubernetes/client-node'],
  'adapters/sigv4.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js', '@aws-sdk/credential-providers'],
  'adapters/sigv4-identity.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js'],
  'lambdas/authorizer/key-source.ts': ['jose'],
  'lambdas/authorizer/token.ts': ['jose'],
  'adapters/dynamodb-ca.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-ledger.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-transactions.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-values.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-attestation-items.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-attestations.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb-register.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/aws-query.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js'],
  'adapters/kms-signer.ts': ['@aws-sdk/client-kms'],
  'adapters/ec2.ts': ['@aws-sdk/client-ec2', '@aws-sdk/credential-providers'],
  'adapters/lambda-invocation.ts': ['@aws-sdk/client-lambda'],
};
/** Adapters do not know one another, but one outside system may take several files that share its name. */
const oneSystem = (file: string) => /^adapters\/([a-z]+)/.exec(file)?.[1];

/** Names through which the world leaks into the rules. */
const worldly = new Set(['process', 'fetch', 'console', 'setTimeout', 'setInterval', 'performance']);
const worldlyCalls = new Set(['Date.now', 'Math.random', 'crypto.getRandomValues', 'crypto.randomUUID']);

interface Source {
  readonly file: string;
  readonly imports: readonly string[];
  readonly world: readonly string[];
}

export function read(file: string, text: string): Source {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? 'unparsable'}`);
  const imports: string[] = [];
  const world: string[] = [];
  const from = (node: { source?: { value?: unknown } | null }) => {
    if (typeof node.source?.value === 'string') imports.push(node.source.value);
  };
  new Visitor({
    ImportDeclaration: from,
    ExportNamedDeclaration: from,
    ExportAllDeclaration: from,
    ImportExpression: ({ source }) => imports.push(source.type === 'Literal' ? String(source.value) : '<computed>'),
    CallExpression: ({ callee, arguments: [first] }) => {
      if (callee.type === 'Identifier' && callee.name === 'require')
        imports.push(first?.type === 'Literal' ? String(first.value) : '<computed>');
    },
    NewExpression: ({ callee, arguments: given }) => {
      if (callee.type === 'Identifier' && callee.name === 'Date' && given.length === 0) world.push('new Date()');
    },
    Identifier: ({ name }) => {
      if (worldly.has(name)) world.push(name);
    },
    MemberExpression: ({ object, property }) => {
      if (object.type !== 'Identifier' || property.type !== 'Identifier') return;
      if (worldlyCalls.has(`${object.name}.${property.name}`)) world.push(`${object.name}.${property.name}`);
    },
  }).visit(program);
  return { file, imports, world };
}

export function violations({ file, imports, world }: Source): string[] {
  const part = file.split('/')[0] ?? '';
  const rule = rules[part];
  if (rule === undefined) return [];
  const found = imports.filter((specifier) => {
    if (specifier.startsWith('.')) {
      const target = relative(root, resolve(root, dirname(file), specifier));
      if (part === 'lambdas' && target.startsWith(`${file.split('/').slice(0, 2).join('/')}/`)) return false;
      if (part === 'adapters' && target.startsWith('adapters/')) return oneSystem(target) !== oneSystem(file);
      return !rule.own.some((prefix) => target.startsWith(prefix));
    }
    const allowed = [...rule.packages, ...(exceptions[file] ?? [])];
    return !allowed.some((name) => specifier === name || (/[:/]$/.test(name) && specifier.startsWith(name)));
  });
  return [
    ...found.map((specifier) => `${file} imports ${specifier}`),
    ...(part === 'core' ? world : []).map((name) => `${file} uses ${name}`),
  ];
}

const files = globSync('{core,adapters,lambdas,lib,kubelet-authenticator,cli,dev}/**/*.ts', { cwd: root });
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
  ['adapters/embedded-ledger.ts', `import './kubernetes-api.ts'`],
  ['adapters/embedded-ledger.ts', `import '@kubernetes/client-node'`],
  ['adapters/dynamodb-ledger.ts', `import '@aws-sdk/client-kms'`],
  ['adapters/lambda-http.ts', `import '@aws-sdk/client-kms'`],
  ['core/issue.ts', `import '@aws-sdk/client-kms'`],
  ['adapters/signer-http.ts', `import('@aws-sdk/credential-providers')`],
  ['lambdas/authorizer/authorizer.ts', `import { jwtVerify } from 'jose'`],
  ['lambdas/sign/handler.ts', `import 'jose'`],
  ['lambdas/sign/handler.ts', `import '../watch-relay/relay.ts'`],
  ['lambdas/sign/index.ts', `import '@aws-sdk/client-iam'`],
  ['lambdas/sign/handler.ts', `import '../../lib/stack.ts'`],
  ['cli/ca.ts', `import '../lambdas/sign/handler.ts'`],
  ['cli/ca.ts', `import '../lib/application.ts'`],
  ['kubelet-authenticator/main.ts', `import '@kubernetes/client-node'`],
  ['kubelet-authenticator/obtain.ts', `await import('@aws-sdk/client-sts')`],
  ['kubelet-authenticator/obtain.ts', `import '../cli/ca.ts'`],
  ['kubelet-authenticator/main.ts', `import 'yaml'`],
  ['lib/application.ts', `import '../lambdas/sign/handler.ts'`],
  ['lib/application.ts', `import '../adapters/kms-signer.ts'`],
  ['lib/application.ts', `import '@aws-sdk/client-kms'`],
])('a planted violation in %s is caught: %s', (file, text) => {
  expect(violations(read(file, text))).toHaveLength(1);
});

test('the tree holds no folder or file that the map does not know', () => {
  const known =
    /^(core|adapters|lambdas|lib|kubelet-authenticator|cli|dev|deploy|docs|examples|bench|test|\.ci|\.github)\//;
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
