/** docs/join.md and examples/join: each flag exists, and each file can be read by the program that it is for. */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { spkiPin } from '../../../core/kubernetes/cluster-info.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { newKey } from '../../harness/x509/requests.ts';
import { planOf } from '../../../kubelet-authenticator/join/join-flags.ts';
import { joinHelp } from '../../../kubelet-authenticator/join/join-options.ts';
import { placesOf } from '../../../kubelet-authenticator/join/join-files.ts';
import type { DiscoveryRefusal } from '../../../kubelet-authenticator/join/discovery-result.ts';

const root = resolve(import.meta.dirname, '../../..');
const folder = join(root, 'examples/join');
const page = readFileSync(join(root, 'docs/join.md'), 'utf8');
const example = (name: string): string => readFileSync(join(folder, name), 'utf8');

/** The arguments after `kubelet-authenticator join` in a text, lines continued with `\` or folded. */
function joinCommands(text: string): string[][] {
  const joined = text.replaceAll(/\\?\n +--/g, ' --');
  return [...joined.matchAll(/kubelet-authenticator join ([^\n#|`]*--[^\n#|`]*)/g)].map(([, rest = '']) =>
    rest.replaceAll('$(hostname -f)', 'node-1').trim().split(/ +/),
  );
}

const world = {
  readText: () => 'abcdef.0123456789abcdef',
  hostname: () => 'node-1',
  program: '/usr/local/bin/kubelet-authenticator',
};

test('kubelet-authenticator accepts every join command', () => {
  const commands = [page, example('cloud-init.yaml')].flatMap(joinCommands);
  expect(commands.length).toBeGreaterThanOrEqual(2);
  for (const argv of commands) {
    const written = argv.map((word) => (word.startsWith('sha256:') ? `sha256:${'0'.repeat(64)}` : word));
    expect(planOf(written, world), argv.join(' ')).toMatchObject({ ok: true });
  }
});

test('every refusal has its row', () => {
  const codes: Record<DiscoveryRefusal, true> = {
    NotSetUp: true,
    TokenUnknown: true,
    TokenCannotSign: true,
    TokenCannotLogIn: true,
    LoginRefused: true,
    SignatureInvalid: true,
    ClusterInfoMalformed: true,
    CaNotPinned: true,
    ServerNotTrusted: true,
    ClusterInfoChanged: true,
    Unreachable: true,
  };
  for (const code of Object.keys(codes)) expect(page).toContain(`\`${code}\``);
});

test('every flag the page names is in the help, and every file it names is written', () => {
  for (const flag of [
    '--token-file',
    '--discovery-file',
    '--dry-run',
    '--serving',
    '--discovery-timeout',
    '--directory',
    '--force',
  ])
    expect([page.includes(flag), joinHelp.includes(`${flag} `) || joinHelp.includes(`${flag}\n`)], flag).toEqual([
      true,
      true,
    ]);
  for (const path of Object.values(placesOf('/x'))) expect(page).toContain(`\`${path.slice(3)}\``);
});

test.each(['P-256', 'RSA-2048'] as const)('the command for the hash gives what join compares, %s', async (kind) => {
  const [, command = ''] = /```sh\n(openssl x509 [^\n]*)\n```/.exec(page) ?? [];
  const { keyPem, spki } = newKey(kind);
  const { path, remove } = temporaryFolder('ca-hash');
  onTestFinished(remove);
  const [key, file] = ['ca.key', 'ca.crt'].map((name) => join(path, name)) as [string, string];
  writeFileSync(key, keyPem);
  execFileSync('openssl', ['req', '-x509', '-key', key, '-subj', '/CN=kubernetes', '-out', file]);
  const printed = execFileSync('sh', ['-c', command.replace('/etc/kubernetes/pki/ca.crt', file)], { encoding: 'utf8' });
  expect(spkiPin(spki)).toBe(`sha256:${printed.trim().split(' ').at(-1)}`);
});

test('the page links to every example', () => {
  for (const name of readdirSync(folder)) expect(page).toContain(`(../examples/join/${name})`);
});

describe('the examples', () => {
  test('are YAML, and cloud-init’s has its first line', () => {
    for (const name of readdirSync(folder).filter((each) => each.endsWith('.yaml')))
      for (const document of parseAllDocuments(example(name))) expect(document.errors, name).toEqual([]);
    expect(example('cloud-init.yaml').split('\n')[0]).toBe('#cloud-config');
    const { write_files: files } = parse(example('cloud-init.yaml')) as {
      write_files: { path: string; permissions: string; content: string }[];
    };
    // The token lets its reader request certificates, so only root may read the file.
    expect(files.find(({ content }) => content.startsWith('abcdef.'))?.permissions).toBe('0600');
    const kubelet = parse(files.find(({ path }) => path.endsWith('config.yaml'))?.content ?? '') as { kind: string };
    expect(kubelet.kind).toBe('KubeletConfiguration');
  });

  test('start the kubelet with what join writes, and never with its own bootstrap', () => {
    const unit = example('10-countersign.conf');
    const start = unit.split('\n').find((line) => /^ExecStart=./.test(line)) ?? '';
    const { kubeconfig, dropIn } = placesOf('/etc/kubernetes');
    expect(start).toContain(`--kubeconfig=${kubeconfig} `);
    expect(start).toContain(`--config-dir=${dirname(dropIn)}`);
    expect(start).not.toContain('bootstrap');
  });
});
