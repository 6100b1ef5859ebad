import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { decodeExecInfo, encodeExecCredential } from '../../../../kubelet-authenticator/credential/exec-credential.ts';
import {
  encodeSettings,
  resolveSettings,
  servingFile,
  nitroTpmKeyKind,
} from '../../../../kubelet-authenticator/settings/settings.ts';
import { settingsFile } from '../settings-file.ts';

const settings = (change: object = {}, flags: Parameters<typeof resolveSettings>[1] = {}) => {
  const resolved = resolveSettings(JSON.stringify({ ...settingsFile, ...change }), flags);
  if (!resolved.ok) throw new Error(resolved.problem.join('; '));
  return resolved.value;
};
const problems = (text: string | undefined, flags: Parameters<typeof resolveSettings>[1] = {}) => {
  const resolved = resolveSettings(text, flags);
  return resolved.ok ? [] : resolved.problem;
};

test('absent settings have defaults, and what is written is read again', () => {
  const resolved = settings();
  expect(resolved).toMatchObject({
    signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
    cacheDirectory: '/var/lib/kubelet/pki/authenticator',
    keyKind: 'P-256',
    servingNames: [],
  });
  expect(resolved).not.toHaveProperty('servingSignerName');
  expect(servingFile(resolved)).toBe('/var/lib/kubelet/pki/authenticator/serving.pem');
  const all = { ...resolved, servingSignerName: 'x/y', clientCaBundleFile: '/b', servingNames: ['10.0.0.1', 'a.b'] };
  expect(resolveSettings(encodeSettings(all))).toEqual({ ok: true, value: all });
});

test('flags take the place of the file, and can say everything', () => {
  expect(settings({}, { 'node-name': 'n2', 'key-kind': 'RSA-4096', 'serving-name': ['fe80::1'] })).toMatchObject({
    nodeName: 'n2',
    keyKind: 'RSA-4096',
    servingNames: ['fe80::1'],
  });
  const flags = {
    'node-name': 'n1',
    'cluster-name': 'c',
    audience: 'a',
    provider: 'insecure',
    server: 'http://127.0.0.1:8080',
    'certificate-authority': '/ca',
    'bootstrap-credentials': '/b',
  };
  expect(problems(undefined, flags)).toEqual([]);
});

test('the version of the evidence is one that the provider makes, or absent', () => {
  expect(settings()).not.toHaveProperty('evidenceVersion');
  expect(settings({}, { 'evidence-version': 'aws/v1' })).toMatchObject({ evidenceVersion: 'aws/v1' });
  const written = encodeSettings(settings({ evidenceVersion: 'aws/v2' }));
  expect(resolveSettings(written)).toMatchObject({ ok: true, value: { evidenceVersion: 'aws/v2' } });
  expect(problems(JSON.stringify({ ...settingsFile, evidenceVersion: 'aws/v9' }))).toEqual([
    'evidenceVersion (--evidence-version) must be one of aws/v2, aws/v1',
  ]);
  expect(problems(JSON.stringify({ ...settingsFile, provider: 'insecure', evidenceVersion: 'aws/v2' }))).toEqual([
    'evidenceVersion (--evidence-version) must be one of insecure/v1',
  ]);
});

test('all problems are reported at once', () => {
  expect(problems('[]')).toEqual(['the settings file is not a JSON object']);
  expect(problems('{"token": "abcdef.')).toEqual(['the settings file is not a JSON object']);
  const wrong = {
    ...settingsFile,
    version: 2,
    nodeName: 'N 1',
    provider: 'azure',
    server: 'http://10.0.0.1',
    color: 1,
    cacheDirectory: 'x',
  };
  expect(problems(JSON.stringify({ ...wrong, audience: undefined }))).toEqual([
    'the settings file has an unknown key "color"',
    'the settings file must have "version": 1',
    'provider (--provider) must be one of aws, aws-nitrotpm, tpm, x509, gce, insecure',
    'nodeName (--node-name) is not a valid node name',
    'server (--server) must be an https URL (http only on loopback)',
    'audience (--audience) is missing',
    'cacheDirectory (--cache-dir) must be an absolute path',
  ]);
});

test('the kind of the endorsement key is a setting of the providers with a TPM', () => {
  const wrong = 'endorsementKey (--endorsement-key)';
  const text = (more: object) => JSON.stringify({ ...settingsFile, ...more });
  expect(problems(text({ endorsementKey: 'p-256' }))).toEqual([
    `${wrong} is a setting of providers tpm and aws-nitrotpm`,
  ]);
  expect(problems(text({ provider: 'tpm', endorsementKey: 'p-521' }))).toEqual([
    `${wrong} must be one of rsa-2048, p-256, p-384`,
  ]);
  // EC2 names an RSA key and one on P-384.
  expect(problems(text({ provider: 'aws-nitrotpm', endorsementKey: 'p-256' }))).toEqual([
    `${wrong} must be one of rsa-2048, p-384`,
  ]);
  expect([undefined, 'rsa-2048', 'p-384'].map((kind) => nitroTpmKeyKind({ endorsementKey: kind as never }))).toEqual([
    'rsa-2048',
    'rsa-2048',
    'p-384',
  ]);
  const resolved = resolveSettings(text({ provider: 'tpm', signerName: undefined }), { 'endorsement-key': 'p-384' });
  expect(resolved).toMatchObject({
    ok: true,
    value: { endorsementKey: 'p-384', signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm' },
  });
});

test.each(['exec', 'serving'])(
  '%s on a machine that never joined names the command that writes the settings',
  (command) => {
    const program = resolve(import.meta.dirname, '../../../../kubelet-authenticator/kubelet-authenticator.ts');
    const ran = spawnSync(process.execPath, [program, command], { encoding: 'utf8' });
    const lines = ran.stderr.trimEnd().split('\n');
    expect([ran.status, ran.stdout]).toEqual([3, '']);
    expect(lines).toContain('kubelet-authenticator: audience (--audience) is missing');
    expect(lines.at(-1)).toBe(
      'kubelet-authenticator: kubelet-authenticator join writes all settings to /etc/kubernetes/kubelet-authenticator/settings.json; --settings names another file',
    );
  },
);

test('finding 23: no line of the log begins another one, or steers a terminal', () => {
  const program = resolve(import.meta.dirname, '../../../../kubelet-authenticator/kubelet-authenticator.ts');
  const flag = '/nope\u001b[31m\u202e\nkubelet-authenticator: forged';
  const ran = spawnSync(process.execPath, [program, 'exec', '--settings', flag], { encoding: 'utf8' });
  expect(ran).toMatchObject({
    status: 3,
    stderr:
      'kubelet-authenticator: the settings: /nope\\u{1b}[31m\\u{202e}\\u{a}kubelet-authenticator: forged cannot be read (ENOENT)\n',
  });
});

test.each([
  [undefined, /is not set/],
  ['', /is not set/],
  ['{', /is not JSON/],
  ['null', /is not an ExecCredential/],
  ['{"kind":"Pod"}', /is not an ExecCredential/],
  ['{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}', /unknown version/],
])('KUBERNETES_EXEC_INFO %s is refused', (text, message) => {
  expect(decodeExecInfo(text)).toEqual({ ok: false, problem: expect.stringMatching(message) as string });
});

test('the answer is of the version that was asked for, its moment in whole seconds', () => {
  const info = decodeExecInfo(
    '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{}}',
  );
  expect(info).toEqual({ ok: true, value: 'v1beta1' });
  const text = encodeExecCredential('v1beta1', { certificatePem: 'C', keyPem: 'K', askAgainAt: 1_700_000_000_999 });
  expect(JSON.parse(text)).toEqual({
    apiVersion: 'client.authentication.k8s.io/v1beta1',
    kind: 'ExecCredential',
    status: { expirationTimestamp: '2023-11-14T22:13:20Z', clientCertificateData: 'C', clientKeyData: 'K' },
  });
});

test('provider x509 needs certificate and key, and no other provider takes them', () => {
  const files = { attestationCertificateFile: '/svid.pem', attestationKeyFile: '/svid-key.pem' };
  const x509 = { ...settingsFile, provider: 'x509' };
  expect(problems(JSON.stringify(x509))).toEqual([
    'attestationCertificateFile (--attestation-certificate) is missing',
    'attestationKeyFile (--attestation-key) is missing',
  ]);
  const resolved = settings({ provider: 'x509', ...files }, { 'attestation-name': 'cn' });
  expect(resolved).toMatchObject({ ...files, attestationName: 'cn' });
  expect(resolved.signerName).toBe('cluster.x-k8s.io/kube-apiserver-client-kubelet-x509');
  expect(resolveSettings(encodeSettings(resolved))).toEqual({ ok: true, value: resolved });
  expect(problems(JSON.stringify({ ...x509, ...files, attestationKeyFile: 'svid-key.pem' }))).toEqual([
    'attestationKeyFile (--attestation-key) must be an absolute path',
  ]);
  expect(problems(JSON.stringify({ ...x509, ...files, attestationName: 'email' }))).toEqual([
    'attestationName (--attestation-name) must be one of uri, cn, dns',
  ]);
  expect(problems(JSON.stringify({ ...settingsFile, ...files }))).toEqual([
    'attestationCertificateFile (--attestation-certificate) is a setting of provider x509',
    'attestationKeyFile (--attestation-key) is a setting of provider x509',
  ]);
});
