/** Names that no kubelet serves under, attested or not: what the profile refuses before anything is asked about a machine. */
import { describe, expect, test } from 'vitest';
import type { SubjectAltNames } from '../../../../core/x509/model.ts';
import { checkProfile } from '../../../../core/policy/check-profile.ts';
import type { Profile } from '../../../../core/policy/profile.ts';
import { isRefusedToKubelets } from '../../../../core/policy/serving-rules.ts';
import { ranges } from '../../../harness/attestation/address-ranges.ts';
import { acceptable, object, profile, request } from '../questions.ts';

const reserved: Profile['reserved'] = {
  names: ['api.prod.example.com', '*.internal.example.com'],
  addresses: ranges('10.96.0.0/12', '192.168.0.1', 'fd00:10:96::/112'),
  clusterDomain: 'k8s.example.org',
};
const attestation = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false } as const;

/** Of an unattested and of an attested profile, which must not differ. */
function refused(sans: Partial<SubjectAltNames>, more: Partial<Profile> = {}): readonly string[] {
  const asked = { ...acceptable['kubelet-serving'], sans };
  const [unattested, attested] = [
    { reserved, ...more },
    { reserved, attestation, ...more },
  ].map((parts) =>
    checkProfile(profile('kubelet-serving', parts), object(asked), request(asked)).map(
      ({ code, message }) => `${code}: ${message}`,
    ),
  );
  expect(attested).toEqual(unattested);
  return unattested ?? [];
}

const hosts = ['n1', 'N1', 'ip-10-0-0-1.eu-central-1.compute.internal', 'worker.1', 'a_b.example.com', '12345'];
test.each([...hosts, `${'l'.repeat(64)}.example`])('%s is a name that a kubelet may serve under', (name) => {
  expect(refused({ dns: [name] })).toEqual([]);
});
test.each(['10.0.0.5', '203.0.113.9', '2001:db8::5', 'fd00::5', '100.64.0.1'])('so is %s', (address) => {
  expect(refused({ ip: [address] })).toEqual([]);
});

describe('finding 4: never for a kubelet', () => {
  test.each([
    'kubernetes',
    'Kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'KUBERNETES.default.SVC.cluster.local',
    'kubernetes.default.svc.corp.example',
    'web.shop.svc',
    'k8s.example.org',
    'a.K8S.example.org',
    'localhost',
    'a.localhost',
    'api.prod.example.com',
    'db.internal.example.com',
  ])('the name %s', (name) => {
    expect(refused({ dns: ['n1', name] })).toEqual([
      `NameReserved: subjectAltName "${name}" is reserved: no kubelet serves under it`,
    ]);
  });

  test.each(['*.example.com', '*', 'a*.example.com', '*.k8s.example.org'])('the wildcard %s', (name) => {
    expect(refused({ dns: ['n1', name] })[0]).toBe(`SanNotPermitted: DNS subjectAltName "${name}" is a wildcard`);
  });

  test.each([
    ['of a service', '10.96.0.1'],
    ['of a service, IPv6', 'fd00:10:96::1'],
    ['of the control-plane endpoint', '192.168.0.1'],
    ['loopback', '127.0.0.1'],
    ['loopback elsewhere', '127.8.8.8'],
    ['loopback, IPv6', '::1'],
    ['unspecified', '0.0.0.0'],
    ['unspecified, IPv6', '::'],
    ['of this network', '0.0.0.9'],
    ['of the metadata service', '169.254.169.254'],
    ['link-local, IPv6', 'fe80::1'],
    ['multicast', '224.0.0.1'],
    ['class E', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['multicast, IPv6', 'ff02::1'],
    ['IPv4-compatible', '::a60:1'],
    ['NAT64', '64:ff9b::a60:1'],
    ['NAT64 of one network', '64:ff9b:1::a60:1'],
    ['of the metadata service over IPv6', 'fd00:ec2::254'],
  ])('an address %s: %s', (_, address) => {
    expect(refused({ ip: ['10.0.0.5', address] })).toEqual([
      `NameReserved: subjectAltName "${address}" is reserved: no kubelet serves under it`,
    ]);
  });

  test('all of them are told, and the in-tree text comes first', () => {
    const asked = {
      ...acceptable['kubelet-serving'],
      usages: [],
      sans: { dns: ['*.a', 'etcd', 'etcd'], ip: ['::1', '10.96.0.1'] },
    };
    const violations = checkProfile(profile('kubelet-serving', { reserved }), object(asked), request(asked));
    expect(violations.map(({ code }) => code)).toEqual([
      'SignerValidationFailure',
      'SanNotPermitted',
      'NameReserved',
      'NameReserved',
      'NameReserved',
    ]);
  });

  test('the profile allows exact ones, and nothing beside them', () => {
    const more = { allowReservedSans: ['*.nodes.example.com', 'etcd', '10.96.0.1', '10.0.0.9'] };
    const dns = ['*.nodes.example.com', 'ETCD', '10.0.0.9'];
    expect(refused({ dns, ip: ['10.96.0.1'] }, more)).toEqual([]);
    expect(refused({ dns: ['*.example.com', 'etcd.kube-system'], ip: ['10.96.0.2'] }, more)).toHaveLength(3);
  });

  test('other signers have other rules', () => {
    const asked = {
      ...acceptable['legacy-unknown'],
      sans: { dns: ['kubernetes', '*.example.com'], ip: ['127.0.0.1'] },
    };
    expect(checkProfile(profile('legacy-unknown', { reserved }), object(asked), request(asked))).toEqual([]);
  });
});

describe('finding 13: never for a kubelet', () => {
  test.each(['10.96.0.1', '10.0.0.5', '10.96.1', '127.1', '0x7f.1', '0x7f000001', '2130706433'])(
    'the DNS name %s, which reads as an address',
    (name) => {
      expect(refused({ dns: [name] })).toEqual([`SanNotPermitted: DNS subjectAltName "${name}" reads as an address`]);
    },
  );

  test.each([
    'etcd',
    'etcd.kube-system',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'metadata',
    'metadata.google.internal',
    'metadata.goog',
    'instance-data',
    'instance-data.ec2.internal',
  ])('the name %s, its own node name or not', (name) => {
    expect(refused({ dns: [name] })).toEqual([
      `NameReserved: subjectAltName "${name}" is reserved: no kubelet serves under it`,
    ]);
    const asked = { ...acceptable['kubelet-serving'], commonName: `system:node:${name}`, sans: { dns: [name] } };
    expect(checkProfile(profile('kubelet-serving', { reserved }), object(asked), request(asked))).toHaveLength(1);
  });

  test.each(['', 'a b,DNS:c', 'a b', 'kubernetes.', 'n1.', '.n1', 'a..b', '-a', 'a/b', 'a:443', '2001:db8::1', 'a@b'])(
    'the DNS name %j, which is no host name',
    (name) => {
      expect(refused({ dns: ['n1', name] })).toEqual([
        `SanNotPermitted: DNS subjectAltName "${name}" is not a host name`,
      ]);
    },
  );

  test('a node may be called like an address, or like one of these: its client certificate is no host name', () => {
    for (const name of ['10.96.0.1', 'etcd', 'metadata']) {
      const asked = { ...acceptable['kube-apiserver-client-kubelet'], commonName: `system:node:${name}` };
      const client = profile('kube-apiserver-client-kubelet', { reserved });
      expect(checkProfile(client, object(asked), request(asked))).toEqual([]);
      const serving = {
        ...acceptable['kubelet-serving'],
        commonName: `system:node:${name}`,
        sans: { ip: ['10.0.0.5'] },
      };
      expect(checkProfile(profile('kubelet-serving', { reserved }), object(serving), request(serving))).toEqual([]);
    }
  });
});

test('the configuration learns which names and addresses a kubelet is refused', () => {
  const isRefused = (name: string): boolean => isRefusedToKubelets(reserved, name);
  const names = ['10.96.0.1', '127.0.0.1', '*.example.com', '10.1', 'api.prod.example.com', 'etcd'];
  expect(names.filter(isRefused)).toEqual(names);
  expect(['10.0.0.1', '2001:db8::1', 'node-1.example.com'].filter(isRefused)).toEqual([]);
});
