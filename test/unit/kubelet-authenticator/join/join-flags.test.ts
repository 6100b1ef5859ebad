import { expect, test } from 'vitest';
import { planOf } from '../../../../kubelet-authenticator/join/join-flags.ts';

test.each([
  [['10.0.0.1:6443', '--tokne', 'abcdef.0123456789abcdef'], 'there is no option --tokne'],
  [['10.0.0.1:6443', '-x'], 'there is no option -x'],
  // The value may be a token.
  [['10.0.0.1:6443', '--token'], "Option '--token <value>' argument missing"],
])('%j', (argv, message) => {
  const planned = planOf(argv, { program: '/usr/bin/kubelet-authenticator', hostname: () => 'n1' } as never);
  expect(planned).toMatchObject({ ok: false, problem: { message: expect.stringMatching(message) as unknown } });
  expect(JSON.stringify(planned)).not.toMatch(/positional|0123456789abcdef/);
});

const cluster = JSON.stringify({
  'current-context': 'a',
  contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': 'eA==' } }],
});
const world = { program: '/usr/bin/kubelet-authenticator', hostname: () => 'n1', readText: () => cluster };
const byFile = (file: string) => planOf(['--discovery-file', file, '--audience', '1/r/prod'], world);

test('a discovery file without a token: the first certificate is requested with the login in it', () => {
  const planned = byFile('/etc/kubernetes/kubelet-before.conf');
  expect(planned).toMatchObject({
    ok: true,
    value: { login: { kind: 'file', file: '/etc/kubernetes/kubelet-before.conf' } },
  });
  const settings = planned.ok ? planned.value?.settings('https://10.0.0.1:6443') : undefined;
  expect(settings).toMatchObject({
    ok: true,
    value: { bootstrapCredentialsFile: '/etc/kubernetes/kubelet-before.conf' },
  });
});

test('the file that join replaces cannot be the login', () => {
  for (const file of ['/etc/kubernetes/kubelet.conf', '/etc/kubernetes/pki/../kubelet.conf'])
    expect(byFile(file)).toMatchObject({
      ok: false,
      problem: { message: expect.stringContaining('name a copy') as unknown },
    });
});
