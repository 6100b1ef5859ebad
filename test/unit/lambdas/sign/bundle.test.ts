/**
 * What is in the code that holds the right to sign: bundled as it is deployed, read from the bundler's own list of
 * inputs, and run once in a process of its own.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleCallers, bundleCluster } from '../../../../core/configuration/bundled-configuration.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import { version } from '../../../../core/version.ts';
import manifest from '../../../../package.json' with { type: 'json' };

const root = resolve(import.meta.dirname, '../../../..');
const cluster = defaultCluster('demo', { maxTtlSeconds: 3_600 });

describe.each(['sign', 'ca'])('the %s function', (service) => {
  let folder: string;
  let inputs: readonly string[];
  let size: number;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
    const { metafile, outputFiles } = buildSync({
      absWorkingDir: root,
      entryPoints: [`lambdas/${service}/index.ts`],
      outfile: 'index.js',
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      target: 'node24',
      format: 'cjs',
      mainFields: ['module', 'main'],
      minify: true,
      define: {
        __COUNTERSIGN_CLUSTER__: JSON.stringify(bundleCluster(cluster)),
        __COUNTERSIGN_CALLERS__: JSON.stringify(bundleCallers({ cluster: 'demo', role: 'countersign-demo-caller' })),
      },
    });
    inputs = Object.keys(metafile.inputs);
    size = outputFiles[0]!.contents.length;
    writeFileSync(join(folder, 'index.js'), outputFiles[0]!.contents);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('holds no stand-in, nothing of another service, and no parser of files it does not read', () => {
    expect(inputs).toContain('core/ca/authority.ts');
    const foreign = inputs.filter(
      (file) =>
        /^adapters\/embedded\/|stand-in|^(dev|cli|lib|test|bench)\//.test(file) ||
        (file.startsWith('lambdas/') && !file.startsWith(`lambdas/${service}/`)) ||
        /node_modules\/(@kubernetes|yaml|zod|commander|pino|prom-client|jose|aws-cdk-lib|constructs)\//.test(file) ||
        // The ca function reads each new CA certificate with a second implementation (core/ca/second-reader.ts).
        (service === 'sign' && /node_modules\/(@peculiar|asn1js|pvtsutils|pvutils)\//.test(file)),
    );
    expect(foreign).toEqual([]);
    // Of AWS only what it calls. The others come with the SDK's way of finding credentials.
    const clients = new Set(inputs.flatMap((file) => /@aws-sdk\/(client-[a-z]+)\//.exec(file)?.[1] ?? []));
    const asks = service === 'sign' ? ['client-lambda'] : [];
    expect([...clients].toSorted()).toEqual(['client-dynamodb', 'client-kms', ...asks]);
  });

  test('is a third of a megabyte more than nothing, not a framework', () => {
    expect(size).toBeLessThan(service === 'sign' ? 600_000 : 720_000);
  });

  /** The Lambda runtime requires the module and takes `handler`. */
  function call(event: object, environment: Readonly<Record<string, string>>) {
    const script = `
      const { handler } = require('./index.js');
      handler(JSON.parse(process.argv[1])).then((answer) => process.stdout.write('\\n' + JSON.stringify(answer)),
        (error) => process.stdout.write('\\n' + JSON.stringify({ threw: error.name, message: error.message })));`;
    const ran = spawnSync(process.execPath, ['-e', script, JSON.stringify(event)], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(ran.stderr).toBe('');
    const lines = ran.stdout.split('\n').filter((line) => line !== '');
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    return { answer: parsed.at(-1) ?? {}, log: parsed.slice(0, -1) };
  }

  test('starts, and without its environment raises the alarm instead of serving', () => {
    const http = { method: 'GET', path: '/v1/clusters/demo/healthz' };
    const event =
      service === 'sign'
        ? { version: '2.0', rawPath: http.path, headers: {}, requestContext: { http }, isBase64Encoded: false }
        : { action: 'show' };
    const { answer, log } = call(event, { PATH: '' });
    if (service === 'sign')
      expect(answer).toMatchObject({ statusCode: 503, headers: { 'x-countersign-outcome': 'busy' } });
    else expect(answer).toMatchObject({ threw: 'MisconfigurationError' });
    expect(log).toHaveLength(1);
    expect(log[0]).toMatchObject({ level: 'error' });
    const logged = JSON.stringify(log[0]);
    for (const name of ['COUNTERSIGN_CLUSTER', 'COUNTERSIGN_CERTIFICATES_TABLE', 'CA ca'])
      expect(logged).toContain(name);
  });
});

test('the version in the bundles is the package’s', () => {
  expect(version).toBe(manifest.version);
});
