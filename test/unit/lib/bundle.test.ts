/** What a function's code is made of, and what is said when it cannot be made. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleAccess, bundleCluster } from '../../../core/configuration/bundled-configuration.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { entries } from '../../../lib/functions.ts';
import { bundle } from '../../../lib/bundle.ts';
import type { Bundle, BundleOptions } from '../../../lib/bundle.ts';

const root = resolve(import.meta.dirname, '../../..');
const rules = bundleCluster(defaultCluster('demo', { maxTtlSeconds: 3600 }));
const access = bundleAccess({
  cluster: 'demo',
  jwt: { issuer: 'https://issuer.example.com', audience: 'demo', subjects: ['system:serviceaccount:a:b'] },
});

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const textOf = ({ files }: Bundle): string => Buffer.from(files.get('index.js') ?? []).toString('utf8');

/** As Lambda would: a CommonJS file by itself. */
function load(made: Bundle, name: string): Readonly<Record<string, unknown>> {
  const file = join(folder, `${name}.cjs`);
  writeFileSync(file, textOf(made));
  return createRequire(import.meta.url)(file) as Readonly<Record<string, unknown>>;
}

describe('the functions of this project', () => {
  const services = [
    ['sign', rules],
    ['attest', rules],
    ['ca', rules],
    ['authorizer', access],
  ] as const;
  const made = new Map(
    services.map(([service, constant]) => [
      service,
      bundle({
        root,
        entry: entries[service],
        constants: { __COUNTERSIGN_CLUSTER__: constant, __COUNTERSIGN_REGION_CERTIFICATES__: '{}' },
      }),
    ]),
  );
  const of = (service: (typeof services)[number][0]): Bundle => {
    const found = made.get(service);
    if (found === undefined) throw new Error(service);
    return found;
  };

  test.each(services)('%s: one file, of its own sources, with its own rules', (service, constant) => {
    const { files, inputs } = of(service);
    expect([...files.keys()]).toEqual(['index.js']);
    const ours = inputs.filter((input) => !input.startsWith('node_modules/'));
    expect(ours).toContain(entries[service]);
    expect(
      ours.filter((input) => !/^(core|adapters)\//.test(input) && !input.startsWith(`lambdas/${service}/`)),
    ).toEqual([]);
    const text = textOf(of(service));
    // However it is quoted.
    expect(text.replaceAll('\\"', '"')).toContain(constant);
    expect(text).not.toContain(root);
  });

  test.each(services)(
    '%s has no stand-in for a key or a table, no parser of the file, no Kubernetes client, no CDK',
    (service) => {
      const { inputs } = of(service);
      // The ca function has a second implementation of X.509 (core/ca/second-reader.ts). Attest verifies chains of TPMs' certificates
      // with it, and loads it with the first of them (test/unit/lambdas/attest/bundle-start.test.ts).
      const strange =
        /adapters\/(embedded|kubernetes)\/|core\/configuration\/(parse\.ts|resolve\/|schema\/)|node_modules\/(yaml|zod|@kubernetes|@peculiar|aws-cdk-lib|pino|prom-client|commander)\//;
      const expected = service === 'ca' || service === 'attest' ? /node_modules\/@peculiar\// : /^$/;
      expect(inputs.filter((input) => strange.test(input) && !expected.test(input))).toEqual([]);
    },
  );

  test('sign and ca can sign, attest alone looks at machines, attest and the authorizer check tokens', () => {
    const has = (service: Parameters<typeof of>[0], part: string): boolean =>
      of(service).inputs.some((input) => input.includes(part));
    const parts = [
      'adapters/aws/kms-signer.ts',
      'adapters/aws/kms-challenge-key.ts',
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-ec2',
      'node_modules/jose/',
      'core/issue.ts',
    ];
    expect(Object.fromEntries(services.map(([service]) => [service, parts.map((part) => has(service, part))]))).toEqual(
      {
        sign: [true, false, true, false, false, true],
        // Its provider gce checks identity tokens of Google.
        attest: [false, true, true, true, true, false],
        ca: [true, false, true, false, false, false],
        authorizer: [false, false, false, false, true, false],
      },
    );
  });

  test.each(services)('%s starts by itself and is not large', (service) => {
    expect(load(of(service), service)['handler']).toBeTypeOf('function');
    // 356 KB was the size without a barrel in the way, and 40 MB with it.
    // Half of attest's is what the EC2 client knows of all that EC2 can say. A fifth is not executed before a TPM's evidence arrives.
    const most = { authorizer: 120, attest: 1400, sign: 900, ca: 900 }[service];
    expect((of(service).files.get('index.js')?.length ?? 0) / 1024).toBeLessThan(most);
  });

  test('the same sources and rules make the same code, others other code', () => {
    const again = bundle({ root, entry: entries.sign, constants: { __COUNTERSIGN_CLUSTER__: rules } });
    expect(again.hash).toBe(of('sign').hash);
    expect(textOf(again)).toBe(textOf(of('sign')));
    const other = bundle({
      root,
      entry: entries.sign,
      constants: { __COUNTERSIGN_CLUSTER__: rules.replace('demo', 'prod') },
    });
    expect(other.hash).not.toBe(of('sign').hash);
    expect(of('ca').hash).not.toBe(of('sign').hash);
  });
});

describe('entries made for this test', () => {
  /** A project of one file. */
  function project(name: string, source: string, more: Partial<BundleOptions> = {}): BundleOptions {
    const at = join(folder, name);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'index.ts'), source);
    return { root: at, entry: 'index.ts', constants: {}, ...more };
  }

  test('a constant is text to the code, whatever is in it', () => {
    const text = `{"a":"'\`\${1}\\n </script>"}`;
    const made = bundle(
      project('constant', 'declare const X: string; export const handler = () => X;', { constants: { X: text } }),
    );
    expect((load(made, 'constant')['handler'] as () => string)()).toBe(text);
  });

  test('a source map comes beside it, and changes the hash', () => {
    const source = 'export const handler = (x: number): number => x + 1;';
    const plain = bundle(project('map', source));
    const mapped = bundle(project('map', source, { sourceMap: true }));
    expect([...mapped.files.keys()].sort()).toEqual(['index.js', 'index.js.map']);
    expect(textOf(mapped)).toContain('//# sourceMappingURL=index.js.map');
    expect(mapped.hash).not.toBe(plain.hash);
  });

  test.each([
    ['nothing there', undefined, 'the entry point index.ts does not exist'],
    ['no handler', 'export const handle = 1;', 'index.ts exports no handler'],
    ['not TypeScript', 'export const handler = ;', /^index\.ts cannot be bundled:\nindex\.ts:1:24: Unexpected ";"$/],
    [
      'an import of nothing',
      "import './x.ts';\nexport const handler = 1;",
      /^index\.ts cannot be bundled:\nindex\.ts:1:8: Could not resolve ".\/x\.ts"$/,
    ],
  ])('%s', (name, source, message) => {
    const options = project(name.replaceAll(' ', '-'), source ?? '');
    if (source === undefined) rmSync(join(options.root, 'index.ts'));
    expect(() => bundle(options)).toThrow(message);
  });
});
