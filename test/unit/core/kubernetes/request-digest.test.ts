import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { RequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import { requestDigest } from '../../../../core/kubernetes/request-digest.ts';

const request: RequestObject = {
  apiVersion: 'certificates.k8s.io/v1',
  name: 'csr-1',
  uid: 'uid-1',
  signerName: 'kubernetes.io/kubelet-serving',
  request: Uint8Array.of(1, 2, 3),
  usages: ['server auth', 'digital signature'],
  expirationSeconds: 3600,
  username: 'system:node:n1',
  groups: ['system:nodes', 'system:authenticated'],
  requesterNodes: [],
  conditions: [],
  hasCertificate: false,
};
const signer = 'kubernetes.io/kubelet-serving';

const empty: RequestObject = {
  apiVersion: 'certificates.k8s.io/v1',
  name: 'n',
  uid: 'u',
  request: new Uint8Array(),
  usages: [],
  username: '',
  groups: [],
  requesterNodes: [],
  conditions: [],
  hasCertificate: false,
};

/** Written out by hand, a line per field; the digests were made with another program. */
describe('vectors', () => {
  test('every field present, lists given unsorted', () => {
    const bytes = [
      '00000004 64656d6f', // demo
      '00000005 7569642d31', // uid-1
      '0000001d 6b756265726e657465732e696f2f6b7562656c65742d73657276696e67', // kubernetes.io/kubelet-serving
      '0000000e 73797374656d3a6e6f64653a6e31', // system:node:n1
      '00000002',
      '00000014 73797374656d3a61757468656e74696361746564', // system:authenticated
      '0000000c 73797374656d3a6e6f646573', // system:nodes
      '00000002',
      '00000011 6469676974616c207369676e6174757265', // digital signature
      '0000000b 7365727665722061757468', // server auth
      '00000004 33363030', // 3600
      '00000003 010203',
    ];
    const digest = createHash('sha256').update(bytes.join('').replaceAll(' ', ''), 'hex').digest('hex');
    expect(digest).toBe('5106449b78e709f1a3f0d0ae68bf6c3254a7152164bf1bcd811aae17a52b5ff1');
    expect(requestDigest('demo', request, signer)).toBe(digest);
  });

  test('nothing present', () => {
    expect(requestDigest('c', empty, 's')).toBe('a4cf868faa0f1884867c1cf8ea40ef85d9abab3b66a262ee5e2490aa83373096');
  });

  test('lists are sorted by UTF-8 bytes, where UTF-16 code units would sort the other way', () => {
    const given = { ...empty, username: 'é', groups: ['\u{1F600}', '～'] };
    expect(requestDigest('c', given, 's')).toBe('1581a2d66c2dab41c7858bd50c406dcd4421331ee8347cf290181eda63245441');
  });
});

const digest = (changed: Partial<RequestObject>, cluster = 'demo', signerName = signer) =>
  requestDigest(cluster, { ...request, ...changed }, signerName);

test('each field of the digest changes it, and moving text between fields does', () => {
  const { expirationSeconds: _, ...withoutExpiration } = request;
  const digests = [
    digest({}),
    digest({}, 'other'),
    digest({}, 'demo', 'kubernetes.io/kube-apiserver-client'),
    digest({ uid: 'uid-2' }),
    digest({ username: 'system:node:n2' }),
    digest({ groups: ['system:nodes'] }),
    digest({ groups: ['system:nodes', 'system:authenticated', 'system:nodes'] }),
    digest({ usages: ['server auth'] }),
    digest({ usages: ['server auth', 'digital signature', 'digital signature'] }),
    digest({ groups: ['system:nodes'], usages: ['system:authenticated', 'server auth', 'digital signature'] }),
    digest({ groups: ['system:nodes', 'system:authenticated', 'digital signature'], usages: ['server auth'] }),
    digest({ expirationSeconds: 3601 }),
    requestDigest('demo', withoutExpiration, signer),
    digest({ expirationSeconds: 0 }),
    digest({ request: Uint8Array.of(1, 2, 4) }),
    digest({ request: Uint8Array.of(1, 2, 3, 0) }),
    digest({ uid: 'uid-1k', username: 'system:node:n1' }),
  ];
  expect(new Set(digests).size).toBe(digests.length);
});

test('what a client or the API server may change along the way does not', () => {
  expect(
    digest({
      apiVersion: 'certificates.k8s.io/v1beta1',
      name: 'renamed',
      groups: request.groups.toReversed(),
      usages: request.usages.toReversed(),
      conditions: [{ type: 'Approved' }],
      hasCertificate: true,
    }),
  ).toBe(digest({}));
});
