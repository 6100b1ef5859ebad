import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { installFor } from '../../tools/install.ts';
import { kubernetesMinor, minorOf, pinnedVersion } from '../../tools/pins.ts';
import { releaseBinary } from '../../tools/release.ts';
import { toolNames, type ToolName } from '../../tools/tools.ts';

/*
 * Programs of the machine are shell scripts in a folder of the test. Nothing is downloaded: `fetch` is the test's own.
 */
let folder: { path: string; remove: () => void };
beforeEach(() => {
  folder = temporaryFolder('tools');
  for (const name of ['bin', 'assets', 'cache']) mkdirSync(join(folder.path, name));
});
afterEach(() => folder.remove());

const KUBERNETES = ['kube-apiserver', 'kube-controller-manager', 'kubectl', 'kubelet', 'kubeadm'] as const;

describe('KUBEBUILDER_ASSETS', () => {
  test.for(KUBERNETES)('gives %s of the minor version under test, of any patch version', async (name) => {
    writeProgram(`assets/${name}`, `echo Kubernetes v${kubernetesMinor}.99`);
    expect((await install([name])).installed.ready.get(name)).toBe(join(folder.path, 'assets', name));
  });

  test('gives an etcd of the pinned minor version', async () => {
    writeProgram('assets/etcd', 'echo etcd Version: 3.6.99; echo Git SHA: 0123456');
    expect((await install(['etcd'])).installed.ready.get('etcd')).toBe(join(folder.path, 'assets/etcd'));
  });

  test.for([
    ['of another version', 'echo Kubernetes v1.34.1', `its version is 1.34.1, the tests need ${kubernetesMinor}`],
    [
      'that begins with the same digits',
      `echo Kubernetes v${kubernetesMinor}0.1`,
      `its version is ${kubernetesMinor}0.1`,
    ],
    ['whose version is unreadable', 'echo Kubernetes devel', 'its version is unreadable: Kubernetes devel'],
    ['that fails', 'exit 1', '`kubelet --version` fails'],
  ] as const)('does not give a kubelet %s, and the reason is printed', async ([, script, reason]) => {
    writeProgram('assets/kubelet', script);
    const { installed, lines } = await install(['kubelet']);
    expect(installed.ready.size).toBe(0);
    expect(lines[0]).toContain(`kubelet: ${folder.path}/assets/kubelet from KUBEBUILDER_ASSETS is refused: ${reason}`);
  });

  test('does not give an etcd of another minor version', async () => {
    writeProgram('assets/etcd', 'echo etcd Version: 3.5.21');
    const { installed, lines } = await install(['etcd']);
    expect(installed.ready.size).toBe(0);
    expect(lines[0]).toContain('its version is 3.5.21, the tests need 3.6');
  });
});

describe('PATH', () => {
  test.for(KUBERNETES)('gives %s of the minor version under test', async (name) => {
    writeProgram(`bin/${name}`, `echo Client Version: v${kubernetesMinor}.0`);
    expect((await install([name])).installed.ready.get(name)).toBe(join(folder.path, 'bin', name));
  });

  test('gives a helm of the pinned minor version only', async () => {
    const version = minorOf(pinnedVersion('helm', 'helm.sh/helm/v4/cmd/helm'));
    writeProgram('bin/helm', `echo v${version}.0`);
    expect((await install(['helm'])).installed.ready.get('helm')).toBe(join(folder.path, 'bin/helm'));
    writeProgram('bin/helm', 'echo v3.19.0');
    expect((await install(['helm'])).installed.ready.size).toBe(0);
  });

  test('is searched further behind a program of another version', async () => {
    writeProgram('bin/kubectl', 'echo Client Version: v1.30.2');
    mkdirSync(join(folder.path, 'more'));
    writeProgram('more/kubectl', `echo Client Version: v${kubernetesMinor}.1`);
    const { installed, lines } = await install(['kubectl'], { PATH: `${folder.path}/bin:${folder.path}/more` });
    expect(installed.ready.get('kubectl')).toBe(join(folder.path, 'more/kubectl'));
    expect(lines[0]).toContain(`${folder.path}/bin/kubectl from PATH is refused: its version is 1.30.2`);
  });

  test('comes after KUBEBUILDER_ASSETS, and after the cache, which has the exact version', async () => {
    writeCompiler();
    await install(['kubectl']);
    for (const place of ['assets', 'bin']) writeProgram(`${place}/kubectl`, `echo v${kubernetesMinor}.0`);
    expect((await install(['kubectl'])).installed.ready.get('kubectl')).toBe(join(folder.path, 'assets/kubectl'));
    rmSync(join(folder.path, 'assets/kubectl'));
    expect((await install(['kubectl'])).installed.ready.get('kubectl')).toContain(join(folder.path, 'cache'));
  });

  test('does not give a program from a relative folder', async () => {
    writeProgram('bin/kubectl', `echo v${kubernetesMinor}.0`);
    const { installed } = await install(['kubectl'], { PATH: relative(process.cwd(), join(folder.path, 'bin')) });
    expect(installed.ready.size).toBe(0);
  });
});

describe('a build', () => {
  test('is one for all programs of a module, and only for those that are asked for', async () => {
    writeCompiler();
    const { installed } = await install(['etcd', 'kube-apiserver', 'kubelet', 'zlint']);
    expect([...installed.ready.keys()]).toEqual(['etcd', 'kube-apiserver', 'kubelet', 'zlint']);
    for (const path of installed.ready.values()) expect(existsSync(path)).toBe(true);
    expect(builds()).toEqual([
      'go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubelet',
      'github.com/zmap/zlint/v3/cmd/zlint',
    ]);
  });

  test('does not repeat what is in the cache', async () => {
    writeCompiler();
    await install(['etcd']);
    await install(['etcd', 'kubectl']);
    expect(builds()).toEqual(['go.etcd.io/etcd/server/v3', 'k8s.io/kubernetes/cmd/kubectl']);
  });

  test('that fails leaves nothing, and the end of its output is the reason, once', async () => {
    writeProgram('bin/go', `[ "$1" != env ] || { echo go1.26.0; exit; }\necho undefined: sense >&2\nexit 1`);
    const { installed, lines } = await install(['etcd', 'kubectl']);
    expect(installed.missing.get('etcd')).toContain('undefined: sense');
    expect(lines).toContain(installed.missing.get('etcd'));
    expect(installed.missing.get('kubectl')).toBe('kubectl: the `go build` that it shares with etcd failed');
    writeCompiler();
    expect((await install(['etcd', 'kubectl'])).installed.missing.size).toBe(0);
  });
});

describe('files of Go modules', () => {
  test('are copied into one folder, of the pinned versions', async () => {
    writeModules();
    const path = (await install(['cluster-api'])).installed.ready.get('cluster-api')!;
    expect(readdirSync(path).toSorted()).toEqual(['cluster.x-k8s.io_machines.yaml', 'infrastructure_awsmachines.yaml']);
    expect(builds()).toEqual([
      expect.stringMatching(/^sigs\.k8s\.io\/cluster-api@v1\.\S+ sigs\.k8s\.io\/cluster-api-provider-aws\/v2@v2\.\S+$/),
    ]);
    expect((await install(['cluster-api'])).installed.ready.get('cluster-api')).toBe(path);
    expect(builds()).toHaveLength(1);
  });

  test('are missing when a module is not the one of go.sum, and the reason is printed', async () => {
    writeProgram('bin/go', `[ "$1" != env ] || { echo go1.26.0; exit; }\necho checksum mismatch >&2\nexit 1`);
    const { installed } = await install(['cluster-api']);
    expect(installed.missing.get('cluster-api')).toContain('checksum mismatch');
    expect(existsSync(join(folder.path, 'cache'))).toBe(true);
    writeModules();
    expect((await install(['cluster-api'])).installed.missing.size).toBe(0);
  });
});

/** On systems without a committed checksum nothing is downloaded. */
describe.skipIf(releaseBinary('kubectl') === undefined)(
  'a release binary with another checksum than the committed one',
  () => {
    const wrong: typeof fetch = () => Promise.resolve(new Response('not kubectl'));

    test('is refused, and the program is built', async () => {
      writeCompiler();
      const { installed, lines } = await install(['kubectl', 'kubelet'], {}, wrong);
      expect(lines).toContainEqual(
        expect.stringMatching(/^kubectl: .* has the SHA-256 [^]*; it will be built instead$/),
      );
      expect([...installed.ready.keys()]).toEqual(['kubectl', 'kubelet']);
      expect(builds()).toEqual(['k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kubelet']);
    });

    test('is not used when it cannot be built either', async () => {
      const { installed } = await install(['kubectl'], {}, wrong);
      expect(installed.ready.size).toBe(0);
      expect(installed.missing.get('kubectl')).toContain('`go build` failed');
    });
  },
);

describe('what the machine lacks', () => {
  test('is printed first, in one list with the command that installs it', async () => {
    writeCompiler();
    const { installed, lines } = await install(['etcd', 'localstack', 'dynamodb-local', 'lambda-ric', 'kubelet']);
    const list = lines.slice(
      0,
      lines.findIndex((line) => line.startsWith('go build of etcd')),
    );
    expect(list).toEqual([
      'this machine lacks:',
      '  Python 3.13 (not found on PATH or in pyenv), for localstack',
      '  Java 17 or newer (`java -version` fails), for dynamodb-local, the LocalStack suites',
      '  Maven (`mvn -version` fails), for dynamodb-local',
      '  a C++ compiler (`c++ --version` fails), for lambda-ric',
      '  make (`make --version` fails), for lambda-ric',
      '  cmake (`cmake --version` fails), for lambda-ric',
      '  python3 (`python3 --version` fails), for lambda-ric',
      '  xz (`xz --version` fails), for lambda-ric',
      '  openssl (`openssl version` fails), for the certificate suites',
      '  containerd (`containerd --version` fails), for the kubelet suites',
      '  ip (`ip -Version` fails), for the kubelet suites',
      'to install them on Debian: apt-get install openjdk-17-jre-headless maven g++ make cmake python3 xz-utils openssl containerd iproute2',
      'to install Python 3.13: pyenv install 3.13',
    ]);
    expect([...installed.ready.keys()]).toEqual(['etcd', 'kubelet']);
    expect(installed.missing.get('localstack')).toBe(
      'localstack: its installation needs Python 3.13 (not found on PATH or in pyenv)',
    );
  });

  test('is the reason of each tool that cannot be installed', async () => {
    const { installed, lines } = await install(toolNames);
    expect([...installed.missing.keys()]).toEqual(toolNames);
    expect(installed.missing.get('kube-apiserver')).toBe(
      'kube-apiserver: its installation needs Go 1.26 or newer (no `go` on PATH)',
    );
    expect(lines).toContain('to install Go 1.26 or newer: see https://go.dev/dl');
  });

  test('is packages of Debian, if only these have the program', async () => {
    for (const name of ['swtpm', 'tpm2']) writeProgram(`bin/${name}`, 'exit 0');
    writeProgram('bin/ldconfig', 'exit 0');
    const partly = await install(['swtpm']);
    expect(partly.installed.missing.get('swtpm')).toMatch(
      /^swtpm: this machine lacks swtpm_setup \(.* fails\), the library .*; on Debian: apt-get install swtpm-tools libtss2-tcti-swtpm0$/,
    );
    writeProgram('bin/swtpm_setup', 'exit 0');
    writeProgram('bin/ldconfig', 'echo "\tlibtss2-tcti-swtpm.so.0 (libc6,x86-64) => /usr/lib/libtss2-tcti-swtpm.so.0"');
    const { installed, lines } = await install(['swtpm']);
    expect(installed.ready.get('swtpm')).toBe(join(folder.path, 'bin/swtpm'));
    expect(lines.join()).not.toContain('swtpm');
  });

  test.for(['go1.25.9', 'go1.9', 'devel'])('is Go, if it is %s', async (version) => {
    writeProgram('bin/go', `echo ${version}`);
    const { installed } = await install(['zlint']);
    expect(installed.missing.get('zlint')).toMatch(/its installation needs Go 1\.26 or newer/);
  });

  test('is nothing when nothing is asked for or everything is there', async () => {
    expect((await install([])).lines).toEqual([]);
    writeProgram('assets/kubectl', `echo v${kubernetesMinor}.0`);
    writeProgram('bin/openssl', 'exit 0');
    expect((await install(['kubectl'])).lines).toEqual([]);
  });
});

function writeProgram(name: string, script: string): void {
  writeFileSync(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** A Go that notes the packages of each build and makes an empty program for each in the folder named by -o. */
function writeCompiler(): void {
  const script = `
    [ "$1" != env ] || { echo go1.26.0; exit; }
    while [ "$1" != -o ]; do shift; done
    into=$2
    shift 2
    echo "$@" >> ${folder.path}/builds
    for package; do
      name=\${package%/v[0-9]}
      : > "$into\${name##*/}"
    done
  `;
  writeProgram('bin/go', script);
}

/** A Go that notes each download and has the modules of Cluster API in its cache. */
function writeModules(): void {
  const cache = join(folder.path, 'modules');
  writeProgram(
    'bin/go',
    `case "$*" in
      'env GOVERSION') echo go1.26.0 ;;
      'env GOMODCACHE') echo ${cache} ;;
      *) shift 2; echo "$@" >> ${folder.path}/builds ;;
    esac`,
  );
  const [core, aws] = ['sigs.k8s.io/cluster-api', 'sigs.k8s.io/cluster-api-provider-aws/v2'].map((module) =>
    join(cache, `${module}@v${pinnedVersion('cluster-api', module)}`),
  );
  for (const place of [
    `${aws}`,
    ...['core', 'bootstrap/kubeadm', 'controlplane/kubeadm'].map((each) => `${core}/${each}`),
  ])
    mkdirSync(join(place, 'config/crd/bases'), { recursive: true });
  writeFileSync(`${core}/core/config/crd/bases/cluster.x-k8s.io_machines.yaml`, 'kind: CustomResourceDefinition');
  writeFileSync(`${core}/core/config/crd/bases/OWNERS`, 'a file with another suffix');
  writeFileSync(`${aws}/config/crd/bases/infrastructure_awsmachines.yaml`, 'kind: CustomResourceDefinition');
}

const builds = () => readFileSync(join(folder.path, 'builds'), 'utf8').trim().split('\n');

const unreachable: typeof globalThis.fetch = () => Promise.reject(new TypeError('fetch failed'));

async function install(names: readonly ToolName[], env: Record<string, string> = {}, fetch = unreachable) {
  const lines: string[] = [];
  const installed = await installFor(names, {
    env: {
      PATH: join(folder.path, 'bin'),
      HOME: folder.path, // where pyenv is looked for
      KUBEBUILDER_ASSETS: join(folder.path, 'assets'),
      COUNTERSIGN_TOOLS_CACHE: join(folder.path, 'cache'),
      ...env,
    },
    fetch,
    progress: (line) => lines.push(line),
  });
  return { installed, lines };
}
