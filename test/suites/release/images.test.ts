/** The images: copied to a registry, pulled and run by containerd; and what is made for arm64, run by qemu with their libraries. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { version } from '../../../core/version.ts';
import { buildAuthenticator } from '../../../deploy/authenticator/build.ts';
import { buildCliScript } from '../../../deploy/cli/build.ts';
import { buildExecutable } from '../../../deploy/executable.ts';
import { entrypointOf, images, processOf } from '../../../deploy/image/images.ts';
import { pinnedPackages, type DebianPackage } from '../../../deploy/image/debian.ts';
import { buildImages, type MadeImage } from '../../../deploy/image/layout.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { requireTools, toolPath } from '../../tools/tools.ts';
import {
  availablePackages,
  must,
  noDebian,
  run,
  startContainerd,
  startRegistry,
  type Containerd,
  type Ran,
  type Registry,
} from './containers.ts';

const { skip } = await requireTools('crane', 'skopeo', 'containerd', 'qemu-aarch64');
const root = resolve(import.meta.dirname, '../../..');
const scripts = { relay: 'watch-relay.cjs', tokenReconcile: 'token-reconcile.cjs', cli: 'countersign.cjs' } as const;
const all = Object.entries(images).map(([key, image]) => ({ image, script: scripts[key as keyof typeof scripts] }));

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

describe.skipIf(skip || noDebian())('the images', () => {
  const folder = temporaryFolder('images');
  const layout = join(folder.path, 'images');
  let made: ReadonlyMap<string, MadeImage>;
  let packages: readonly DebianPackage[];
  let registry: Registry;
  let containerd: Containerd;
  const reference = (name: string): string => `${registry.host}/countersign/${name}:${version}`;
  beforeAll(async () => {
    packages = pinnedPackages(availablePackages(folder.path));
    made = await buildImages(layout, { images: Object.values(images), architectures: ['x64', 'arm64'], packages });
    writeFileSync(join(folder.path, 'hosts'), '192.0.2.7 endpoint.example.com\n');
    registry = await startRegistry(folder.path);
    containerd = await startContainerd(folder.path);
    for (const { image } of all)
      await must('skopeo', [
        'copy',
        '--quiet',
        '--all',
        '--dest-tls-verify=false',
        `oci:${layout}:${image.name}`,
        `docker://${reference(image.name)}`,
      ]);
  });
  afterAll(async () => {
    await containerd?.stop();
    await registry?.stop();
    folder.remove();
  });
  const blob = (digest: string): unknown =>
    JSON.parse(readFileSync(join(layout, 'blobs', digest.replace(':', '/')), 'utf8')) as unknown;

  test('are the same to the byte when they are made again', async () => {
    const again = await buildImages(join(folder.path, 'again'), {
      images: [images.relay],
      architectures: ['x64', 'arm64'],
      packages,
    });
    expect(again.get('watch-relay')?.digest).toBe(made.get('watch-relay')?.digest);
  });

  test.each(all)('$image.name is in the registry as it was made, for both architectures', async ({ image, script }) => {
    const crane = await toolPath('crane');
    expect((await must(crane, ['digest', reference(image.name)])).trim()).toBe(made.get(image.name)?.digest);
    await must(crane, ['validate', '--remote', reference(image.name)]);
    const { manifests } = blob(made.get(image.name)!.digest) as { readonly manifests: readonly Descriptor[] };
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64']);
    for (const { platform } of manifests) {
      const args = ['inspect', '--config', '--tls-verify=false', '--override-arch', platform!.architecture];
      const { config } = JSON.parse(await must('skopeo', [...args, `docker://${reference(image.name)}`])) as {
        readonly config: object;
      };
      expect(config).toEqual(processOf(image, script));
    }
  });

  let containers = 0;
  const start = async (name: string, ...words: readonly string[]): Promise<Ran> => {
    // As a kubelet mounts it.
    const hosts = `type=bind,src=${join(folder.path, 'hosts')},dst=/etc/hosts,options=rbind:ro`;
    const args = ['run', '--rm', '--read-only', '--mount', hosts, reference(name), `test-${++containers}`];
    return containerd.ctr([...args, ...words]);
  };

  test('containerd pulls and starts them, as their entrypoint and their user say', async () => {
    for (const { image } of all)
      expect(await containerd.ctr(['images', 'pull', '--plain-http', reference(image.name)])).toMatchObject({
        code: 0,
      });
    // Without arguments each program says how it is used, and nothing of Node or of a library that is missing.
    expect(await start('watch-relay')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url or COUNTERSIGN_URL') as unknown,
    });
    expect(await start('token-reconcile')).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/^token-reconcile: /) as unknown,
    });
    const [node = '', ...flags] = entrypointOf(images.relay, scripts.relay).slice(0, -1);
    const evaluate = (code: string): Promise<Ran> => start('watch-relay', node, ...flags, '-e', code);
    expect(await evaluate('console.log(process.getuid(), process.getgid(), process.env.HOME)')).toEqual({
      code: 0,
      stdout: '65532 65532 /nonexistent\n',
      stderr: '',
    });
    expect((await evaluate('require("fs").writeFileSync("/tmp/x", "")')).stderr).toContain('ERR_ACCESS_DENIED');
    // The C library loads parts of itself to resolve a name.
    const lookUp = 'require("dns").lookup("endpoint.example.com", (error, address) => console.log(error ?? address))';
    expect(await evaluate(lookUp)).toMatchObject({ code: 0, stdout: '192.0.2.7\n' });
    const system = 'console.log(require("tls").getCACertificates("system").length > 100)';
    expect(await evaluate(system)).toMatchObject({ code: 0, stdout: 'true\n' });
  });

  test('the command line’s decides the requests of a mounted folder', async () => {
    const work = join(folder.path, 'work');
    mkdirSync(work);
    writeFileSync(join(work, 'countersign.yaml'), readFileSync(join(root, 'examples/countersign.yaml')));
    const mount = `type=bind,src=${work},dst=/config,options=rbind:ro`;
    const command = [...entrypointOf(images.cli, scripts.cli), 'config', 'validate', '/config/countersign.yaml'];
    const args = ['run', '--rm', '--read-only', '--mount', mount, reference('countersign'), 'validate', ...command];
    expect(await containerd.ctr(args)).toMatchObject({ code: 0, stderr: '' });
  });

  describe('for arm64', () => {
    const unpacked = join(folder.path, 'arm64');
    const emulated = async (program: string, ...args: readonly string[]): Promise<Ran> =>
      run(await toolPath('qemu-aarch64'), ['-L', unpacked, program, ...args], {
        PATH: '/nonexistent',
        HOME: folder.path,
      });
    beforeAll(async () => {
      mkdirSync(unpacked);
      const { manifests } = blob(made.get('countersign')!.digest) as { readonly manifests: readonly Descriptor[] };
      const arm = manifests.find(({ platform }) => platform?.architecture === 'arm64')!;
      const { layers } = blob(arm.digest) as { readonly layers: readonly Descriptor[] };
      for (const { digest } of layers)
        await must('tar', ['-xzf', join(layout, 'blobs', digest.replace(':', '/')), '-C', unpacked]);
    });

    test('the image’s program runs with the image’s Node and libraries', async () => {
      const [node = '', ...rest] = entrypointOf(images.cli, scripts.cli).map((word) =>
        word.startsWith('/') ? join(unpacked, word) : word,
      );
      expect(await emulated(node, ...rest, '--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
      expect(await emulated(node, '-p', 'process.arch')).toMatchObject({ code: 0, stdout: 'arm64\n' });
    });

    test.each([
      ['countersign', buildCliScript],
      ['kubelet-authenticator', buildAuthenticator],
    ] as const)('the single executable of %s says its version and how it is used', async (name, build) => {
      const script = await build(join(folder.path, name));
      const { path } = buildExecutable(script.path, 'arm64');
      expect(await emulated(path, '--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
      expect(await emulated(path, '--help')).toMatchObject({ code: 0, stderr: '' });
    });
  });
});
