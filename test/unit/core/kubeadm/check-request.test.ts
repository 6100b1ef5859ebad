/** Each certificate of kubeadm by its profile, and everything else refused with its reason. */
import { describe, expect, test } from 'vitest';
import { checkKubeadmRequest } from '../../../../core/kubeadm/check-request.ts';
import { kubeadmCertificates } from '../../../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../../../core/kubeadm/certificates.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { directoryName, makeRequest, pemBlock } from '../../../harness/x509/requests.ts';
import type { RequestSpec, SanSpec } from '../../../harness/x509/requests.ts';
import { kubeadmCluster, kubeadmRequests } from './requests.ts';

const settings = kubeadmCluster().kubeadm!;

function check(name: KubeadmCertificate, spec: RequestSpec, after = '') {
  const decoded = decodeRequest(Buffer.from(makeRequest(spec).pem + after));
  if (!decoded.ok) throw new Error('the test wrote a request that cannot be read');
  const { violations, node } = checkKubeadmRequest(name, decoded.value, settings);
  return { node, violations: violations.map(({ code, message }) => `${code}: ${message}`) };
}

describe.each(kubeadmCertificates)('%s', (name) => {
  const spec = kubeadmRequests[name];

  test.each(['P-256', 'P-384', 'RSA-2048', 'RSA-4096'] as const)('with a key of kind %s is permitted', (key) => {
    expect(check(name, { ...spec, key }).violations).toEqual([]);
  });

  test('is no other certificate', () => {
    const alike: readonly string[] =
      name.startsWith('etcd-') && spec.sans !== undefined ? ['etcd-server', 'etcd-peer'] : [];
    const others = kubeadmCertificates.filter((other) => other !== name && !alike.includes(other));
    expect(others.filter((other) => check(other, spec).violations.length === 0)).toEqual([]);
  });

  test('with another common name, organization or attribute is refused', () => {
    const subject = spec.subject as Readonly<Record<string, string>>;
    const changes: RequestSpec['subject'][] = [
      { ...subject, CN: `${subject['CN']}x` },
      { ...subject, O: 'system:masters2' },
      { ...subject, OU: 'x' },
      { ...subject, C: 'DE' },
      Object.fromEntries(Object.entries(subject).filter(([type]) => type !== 'CN')),
    ];
    for (const change of changes)
      expect(check(name, { ...spec, subject: change! }).violations).toContainEqual(
        expect.stringMatching(/^SubjectNotPermitted: /),
      );
  });

  test('with a further name is refused', () => {
    const names: SanSpec[] = [
      { dns: ['evil.example.com'] },
      { ip: ['10.6.6.6'] },
      { email: ['a@example.com'] },
      { uri: ['spiffe://x/y'] },
      { raw: [directoryName({ CN: 'x' })] },
    ];
    for (const more of names) {
      const { dns = [], ip = [] } = spec.sans ?? {};
      const merged = { ...more, dns: [...dns, ...(more.dns ?? [])], ip: [...ip, ...(more.ip ?? [])] };
      expect(check(name, { ...spec, sans: merged }).violations).toContainEqual(
        expect.stringMatching(/^SanNotPermitted: .* is not permitted for this certificate$/),
      );
    }
  });

  test('that asks for usages or to be a CA is refused', () => {
    const extensions = [
      { oid: '2.5.29.15', value: der.bits(Buffer.from([0x04])) },
      { oid: '2.5.29.37', value: der.sequence(der.oid('2.5.29.37.0')) },
      { oid: '2.5.29.19', value: der.sequence(der.boolean(true)) },
    ];
    for (const extension of extensions)
      expect(check(name, { ...spec, extensions: [extension] }).violations).toEqual([
        `UsageNotPermitted: kubeadm does not ask for extension ${extension.oid}`,
      ]);
  });

  test('with a key or a digest that kubeadm does not use is refused', () => {
    for (const key of ['RSA-1024', 'P-224', 'P-521', 'Ed25519'] as const)
      expect(check(name, { ...spec, key }).violations).toContainEqual(
        expect.stringMatching(/^KeyNotPermitted: key kind /),
      );
    expect(check(name, { ...spec, hash: 'sha1' }).violations).toEqual([
      'KeyNotPermitted: a self-signature with SHA-1 is not permitted (SHA-256, SHA-384, SHA-512)',
    ]);
  });

  test('with evidence after it is refused', () => {
    const after = pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('tpm'));
    expect(check(name, spec, after).violations).toEqual([
      'RequestMalformed: there is more than a certificate request in the file',
    ]);
  });
});

test('RSA keys have at most 4096 bits, as kubeadm makes them', () => {
  const decoded = decodeRequest(makeRequest(kubeadmRequests['admin.conf']).bytes);
  if (!decoded.ok) throw new Error('the test wrote a request that cannot be read');
  const of = (bits: number) => {
    const publicKey = { ...decoded.value.publicKey, kind: 'RSA' as const, bits, description: `RSA ${bits}` };
    return checkKubeadmRequest('admin.conf', { ...decoded.value, publicKey }, settings).violations;
  };
  expect([of(4096), of(4104)]).toEqual([
    [],
    [
      {
        code: 'KeyNotPermitted',
        message: 'key kind RSA 4104 is not one of kubeadm’s (RSA 2048 to 4096, P-256, P-384)',
      },
    ],
  ]);
});

test('the user of no node is no node', () => {
  const subject = { O: 'system:nodes', CN: 'system:node:' };
  expect(check('kubelet.conf', { subject }).violations).toEqual([
    'SubjectNotPermitted: common name "system:node:" is not that of kubeadm (system:node:<a node of kubeadm.nodes>)',
  ]);
});

test('a refusal says what kubeadm asks for', () => {
  expect(check('scheduler.conf', { subject: { O: 'x', CN: 'system:kube-scheduler' } }).violations).toEqual([
    'SubjectNotPermitted: organizations "x" are not those of kubeadm (no organization)',
    'SubjectNotPermitted: the subject has attributes that kubeadm does not give',
  ]);
  expect(
    check('admin.conf', { subject: { O: ['x', 'kubeadm:cluster-admins'], CN: 'kubernetes-admin' } }).violations,
  ).toEqual([
    expect.stringContaining('are not those of kubeadm (O "kubeadm:cluster-admins")'),
    'SubjectNotPermitted: the subject has attributes that kubeadm does not give',
  ]);
});

describe('the names of the API server', () => {
  const spec = kubeadmRequests.apiserver;
  const dns = spec.sans!.dns!;

  test('are those of one node, and say which', () => {
    expect(check('apiserver', spec).node).toBe('cp-1');
    const of = (names: readonly string[], ip: readonly string[] = ['10.96.0.1']) =>
      check('apiserver', { ...spec, sans: { dns: names, ip } });
    const fixed = dns.slice(1);
    expect(of([...fixed, 'cp-2'], ['10.0.0.12'])).toEqual({ node: 'cp-2', violations: [] });
    const none = 'SanNotPermitted: its DNS names must hold exactly one name of a node in kubeadm.nodes';
    expect(of(fixed).violations).toEqual([none]);
    expect(of([...fixed, 'cp-1', 'cp-2']).violations).toContain(none);
    expect(of([...fixed, 'cp-3']).violations).toContain(none);
    // An address of another node.
    expect(of([...fixed, 'cp-2'], ['10.0.0.11']).violations).toEqual([
      'SanNotPermitted: subjectAltName "10.0.0.11" is not permitted for this certificate',
    ]);
  });

  test('may be the further names of the node and of the configuration, in upper or lower case', () => {
    const more = [...dns, 'CP-1.example.com', '*.api.example.com'];
    expect(check('apiserver', { ...spec, sans: { dns: more } }).violations).toEqual([]);
    // A wildcard permits itself and no name below it.
    expect(check('apiserver', { ...spec, sans: { dns: [...dns, 'a.api.example.com'] } }).violations).toHaveLength(1);
  });

  test('must be all that kubeadm gives', () => {
    for (const left of dns.filter((name) => name.startsWith('kubernetes')))
      expect(check('apiserver', { ...spec, sans: { dns: dns.filter((name) => name !== left) } }).violations).toEqual([
        `SanNotPermitted: kubeadm’s subjectAltNames "${left}" are missing`,
      ]);
  });
});

test('a member of etcd serves under its own name and addresses only', () => {
  const spec = kubeadmRequests['etcd-peer'];
  const [subject, sans] = [{ CN: 'cp-2' }, spec.sans!];
  expect(check('etcd-peer', { ...spec, subject }).violations).toHaveLength(3);
  const own = { dns: ['cp-2', 'localhost'], ip: ['10.0.0.12', '127.0.0.1', '::1'] };
  expect(check('etcd-peer', { ...spec, subject, sans: own })).toEqual({ node: 'cp-2', violations: [] });
  expect(check('etcd-peer', { ...spec, sans: { ...sans, dns: ['cp-1'] } }).violations).toEqual([
    'SanNotPermitted: kubeadm’s subjectAltNames "localhost" are missing',
  ]);
  expect(check('etcd-peer', { ...spec, subject: { CN: 'worker-1' } }).node).toBeUndefined();
});
