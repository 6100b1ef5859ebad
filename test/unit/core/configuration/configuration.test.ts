import { describe, expect, test } from 'vitest';
import { configurationSchema, defaultCluster, parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { ranges } from '../../../harness/attestation/address-ranges.ts';

/** A cluster with one profile, into which each test puts what it is about. */
function file({
  cas = 'ca: {subject: {commonName: CA}}',
  profile = '{}',
  signer = 'k8s.example.com/web',
  more = '',
}): string {
  return `version: 1
clusters:
  demo:
    cas: {${cas}}
    profiles:
      ${signer}: ${profile}
${more}`;
}

const web = `{usages: {allowed: [server auth]}, sans: {dns: ['*.example.com']}}`;

function problems(text: string): string[] {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  if (parsed.ok) throw new Error('expected problems');
  return parsed.problem.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
}

function warnings(text: string): string[] {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join());
  return parsed.value.warnings.map(({ line, path }) => `${line} ${path}`);
}

function cluster(text: string, name = 'demo'): ClusterConfiguration {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  const found = parsed.value.configuration.clusters.get(name);
  if (found === undefined) throw new Error(`no cluster ${name}`);
  return found;
}

describe('what holds', () => {
  test('every default is filled in', () => {
    const demo = cluster(file({ signer: 'kubernetes.io/kube-apiserver-client' }));
    expect(demo).toEqual({
      name: 'demo',
      cas: new Map([
        [
          'ca',
          {
            name: 'ca',
            kind: 'selfSigned',
            keySpec: 'P-256',
            signatureAlgorithm: 'ECDSA_SHA_256',
            subject: { commonName: 'CA' },
            validitySeconds: 3650 * 86_400,
            pathLen: 0,
          },
        ],
      ]),
      profiles: new Map([
        [
          'kubernetes.io/kube-apiserver-client',
          {
            signerName: 'kubernetes.io/kube-apiserver-client',
            kind: 'kube-apiserver-client',
            ca: 'ca',
            maxTtlSeconds: 30 * 86_400,
            keys: ['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'],
            allowReserved: [],
            reserved: { names: [], addresses: [], clusterDomain: 'cluster.local' },
            subject: {},
            requester: { users: [], groups: [] },
          },
        ],
      ]),
      approval: new Map([['kubernetes.io/kube-apiserver-client', 'manual']]),
    });
  });

  test('a signer of one’s own, every key used', () => {
    const demo = cluster(`
version: 1
clusters:
  demo:
    cas:
      clients: {kind: selfSigned, keySpec: RSA-3072, signatureAlgorithm: RSASSA_PSS_SHA_384, validity: 90d, pathLen: 2,
        subject: {commonName: Clients, organization: Example, organizationalUnit: PKI, country: CH}}
      web: {keySpec: P-521, subject: {commonName: Web}}
    profiles:
      k8s.example.com/web:
        ca: web
        maxTtl: 90m
        keys: [P-256]
        requester: {users: [alice], groups: ['team-*']}
        usages: {allowed: [digital signature, server auth], required: [server auth]}
        subject: {commonNames: ['web-*'], organizations: [example], commonNameRequired: true, allowReserved: ['system:web']}
        sans: {dns: ['*.example.com'], email: ['*@example.com'], ip: [10.0.0.0/8, '2001:db8::1'], uri: ['spiffe://example.com/*'], required: true}
    approval: {k8s.example.com/web: manual}
    reservedNames: [api.example.com, 'Platform *']
    reservedAddresses: [10.96.0.0/12, 'fd00::1']
    clusterDomain: k8s.example.com
`);
    expect(demo.cas.get('clients')).toEqual({
      name: 'clients',
      kind: 'selfSigned',
      keySpec: 'RSA-3072',
      signatureAlgorithm: 'RSASSA_PSS_SHA_384',
      subject: { commonName: 'Clients', organization: 'Example', organizationalUnit: 'PKI', country: 'CH' },
      validitySeconds: 90 * 86_400,
      pathLen: 2,
    });
    expect(demo.cas.get('web')?.signatureAlgorithm).toBe('ECDSA_SHA_512');
    expect(demo.profiles.get('k8s.example.com/web')).toEqual({
      signerName: 'k8s.example.com/web',
      kind: 'custom',
      ca: 'web',
      maxTtlSeconds: 5400,
      keys: ['P-256'],
      allowReserved: ['system:web'],
      reserved: {
        names: ['api.example.com', 'platform *'],
        addresses: ranges('10.96.0.0/12', 'fd00::1'),
        clusterDomain: 'k8s.example.com',
      },
      subject: { commonNames: ['web-*'], organizations: ['example'], commonNameRequired: true },
      requester: { users: ['alice'], groups: ['team-*'] },
      custom: {
        usages: { allowed: ['digital signature', 'server auth'], required: ['server auth'] },
        sans: {
          dns: ['*.example.com'],
          email: ['*@example.com'],
          ip: ranges('10.0.0.0/8', '2001:db8::1'),
          uri: ['spiffe://example.com/*'],
          required: true,
        },
      },
    });
  });

  test('defaults are merged map by map; lists and values are replaced', () => {
    const text = `
version: 1
defaults:
  cas: {ca: {keySpec: P-384, validity: 30d}}
  profiles:
    kubernetes.io/kubelet-serving: {maxTtl: 10m, keys: [RSA, P-256]}
clusters:
  a: {cas: {ca: {subject: {commonName: A}}}}
  b:
    cas: {ca: {subject: {commonName: B}, validity: 60d}}
    profiles: {kubernetes.io/kubelet-serving: {keys: [P-521]}, kubernetes.io/kube-apiserver-client: {}}
`;
    const [a, b] = [cluster(text, 'a'), cluster(text, 'b')];
    expect(a.cas.get('ca')).toMatchObject({
      keySpec: 'P-384',
      validitySeconds: 30 * 86_400,
      subject: { commonName: 'A' },
    });
    expect(b.cas.get('ca')).toMatchObject({
      keySpec: 'P-384',
      validitySeconds: 60 * 86_400,
      subject: { commonName: 'B' },
    });
    expect([...a.profiles.keys()]).toEqual(['kubernetes.io/kubelet-serving']);
    expect(b.profiles.get('kubernetes.io/kubelet-serving')).toMatchObject({ maxTtlSeconds: 600, keys: ['P-521'] });
    expect(b.profiles.size).toBe(2);
  });

  test.each([
    ['60s', 60],
    ['10m', 600],
    ['720h', 2_592_000],
    ['30d', 2_592_000],
  ])('maxTtl %s is %i seconds', (maxTtl, seconds) => {
    const demo = cluster(file({ signer: 'kubernetes.io/kubelet-serving', profile: `{maxTtl: ${maxTtl}}` }));
    expect(demo.profiles.get('kubernetes.io/kubelet-serving')?.maxTtlSeconds).toBe(seconds);
  });
});

describe('the file itself', () => {
  test.each([
    ['empty', '', '1:1 : must be a map of keys to values ({} for an empty one)'],
    ['a list', '- 1', '1:1 : must be a map of keys to values ({} for an empty one)'],
    ['no clusters', 'version: 1\nclusters: {}', '2:1 clusters: no cluster is named'],
    ['clusters missing', 'version: 1', '1:1 clusters: is required'],
    ['another version', 'version: 2\nclusters: {a: {}}', '1:10 version: must be 1'],
    ['broken YAML', 'version: [1\n', expect.stringMatching(/^2:1 : Flow sequence/)],
    ['two documents', 'version: 1\n---\nversion: 1', expect.stringMatching(/^2:1 : .*multiple documents/)],
    ['a key twice', 'version: 1\nversion: 1', '2:1 : Map keys must be unique'],
    [
      'a PEM',
      '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
      '1:1 : this is a PEM file (CERTIFICATE), not a countersign.yaml',
    ],
    [
      'a Kubernetes object',
      'apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: Secret',
      '1:1 : this is a Kubernetes object of kind "ConfigMap", not a countersign.yaml',
    ],
    [
      'a kubeconfig',
      'apiVersion: v1\nkind: Config\nclusters: []',
      '1:1 : this is a Kubernetes object of kind "Config", not a countersign.yaml',
    ],
    [
      'something else in YAML',
      'name: x\nitems: [1]',
      '1:1 : this is not a countersign.yaml: it lacks all of the keys version, clusters, defaults',
    ],
    [
      'no YAML at all',
      '#!/bin/sh\nif [ -e x ]; then\n  echo "a: b" {\nfi\n\tx: [\n',
      '1:1 : this is not a countersign.yaml: it lacks all of the keys version, clusters, defaults',
    ],
    ['bytes', 'version: 1\0', '1:1 : this is not a text file, and not a countersign.yaml'],
    ['a version in quotes', 'version: "1"\nclusters: {a: {}}', '1:10 version: must be 1 without quotes'],
    ['an anchor', 'version: &x 1', expect.stringContaining('anchors and aliases are not supported')],
    ['a tag', 'version: !!int 1', expect.stringMatching(/^1:.*tags such as .* are not supported/)],
    ['an unknown tag', 'version: !x 1', expect.stringMatching(/^1:10 : Unresolved tag/)],
    ['a key that is no text', '1: 2', '1:1 : a key must be text; put it in quotes'],
    ['a key that JavaScript would lose', 'version: 1\n__proto__: {}', '2:1 : unknown key "__proto__"'],
    ['too much of it', '#'.repeat(1_048_577), '1:1 : the file is too large'],
  ])('%s', (_, text, expected) => {
    expect(problems(text)).toContainEqual(expected);
  });

  test('an alias bomb is refused before it is unfolded', () => {
    const bomb = [
      'version: 1',
      'a: &a [x]',
      ...Array.from(
        { length: 30 },
        (_, n) => `${'b'.repeat(n + 1)}: &n${n} [${n === 0 ? '*a, *a' : `*n${n - 1}, *n${n - 1}`}]`,
      ),
    ];
    expect(problems(bomb.join('\n'))[0]).toMatch(/anchors and aliases/);
  });

  test('nesting beyond any sense is a problem, not a crash', () => {
    expect(problems('['.repeat(50_000)).length).toBeGreaterThan(0);
  });

  test('a merge key is an unknown key', () => {
    expect(problems('version: 1\nclusters:\n  a:\n    <<: {}\n')[0]).toMatch(
      /^4:5 clusters.a\["<<"\]: unknown key "<<"/,
    );
  });
});

/** What is written, and all that is said about it. `profile` stands on line 6. */
describe('unknown keys and wrong values, with line, column and path', () => {
  test('all of them at once, in the order of the file, with what was probably meant', () => {
    expect(
      problems(`version: 1
defaults:
  profile: {}
clusters:
  Demo: {}
  demo:
    cas:
      ca: {keyspec: P-256, pathLen: -1}
      other: P-256
    profiles:
      web: {}
      kubernetes.io/kubelet-serving: {maxTTL: 30d, keys: [P256], ca: 7}
      k8s.example.com/web: {maxTtl: 1h30m, usages: {allowed: [server-auth]}, attest: {}}
    frontdoor: httpApi
`),
    ).toEqual([
      '3:3 defaults.profile: unknown key "profile"; did you mean "profiles"?',
      '5:3 clusters.Demo: must be a DNS label: lower-case letters, digits and inner hyphens',
      '8:12 clusters.demo.cas.ca.keyspec: unknown key "keyspec"; did you mean "keySpec"?',
      '8:37 clusters.demo.cas.ca.pathLen: must be 0 or more',
      '9:14 clusters.demo.cas.other: must be a map of keys to values ({} for an empty one)',
      '11:7 clusters.demo.profiles.web: must be a signer name: a domain with a dot, one slash, a path, such as k8s.example.com/web',
      '12:39 clusters.demo.profiles["kubernetes.io/kubelet-serving"].maxTTL: unknown key "maxTTL"; did you mean "maxTtl"?',
      '12:59 clusters.demo.profiles["kubernetes.io/kubelet-serving"].keys[0]: "P256" is not known here; did you mean "P-256"?',
      '12:70 clusters.demo.profiles["kubernetes.io/kubelet-serving"].ca: must be text: put it in quotes',
      '13:37 clusters.demo.profiles["k8s.example.com/web"].maxTtl: must be a duration such as 30d, 720h, 90m or 60s (quoted or not, one unit)',
      '13:63 clusters.demo.profiles["k8s.example.com/web"].usages.allowed[0]: "server-auth" is not known here; did you mean "server auth"?',
      '13:78 clusters.demo.profiles["k8s.example.com/web"].attest: unknown key "attest" (known: ca, maxTtl, keys, requester, attestation, requestBlocks, freshKeys, subject, usages, sans)',
      '14:5 clusters.demo.frontdoor: unknown key "frontdoor"; did you mean "frontDoor"?',
    ]);
  });
});

describe('values of a wrong form do not hide values that do not fit together', () => {
  const at = 'clusters.demo.profiles["kubernetes.io/kubelet-serving"]';
  const demo = (cas: string, profile: string, more = ''): string =>
    `version: 1\nclusters:\n  demo:\n    cas: ${cas}\n    profiles: {kubernetes.io/kubelet-serving: ${profile}}\n${more}`;
  const named = '{a: {subject: {commonName: A}}, b: {}}';

  test.each([
    [
      'a lifetime without a unit',
      demo(named, '{ca: a, maxTtl: 30}'),
      [`${at}.maxTtl: has no unit: write 30m, 30h or 30d`, 'clusters.demo.cas.b.subject.commonName: is required'],
    ],
    [
      'the version',
      demo(named, '{ca: a}').replace('1', '2'),
      ['version: must be 1', 'clusters.demo.cas.b.subject.commonName: is required'],
    ],
    [
      'an unknown key',
      demo(named, '{ca: a, maxTTL: 1h}'),
      [
        `${at}.maxTTL: unknown key "maxTTL"; did you mean "maxTtl"?`,
        'clusters.demo.cas.b.subject.commonName: is required',
      ],
    ],
    [
      'another cluster',
      `${demo(named, '{ca: a}')}  other: 3\n`,
      [
        'clusters.other: must be a map of keys to values ({} for an empty one)',
        'clusters.demo.cas.b.subject.commonName: is required',
      ],
    ],
    // Without the CA it cannot be said whether the signer names one that exists.
    [
      'a CA as a whole',
      demo('{a: 1}', '{ca: a}'),
      ['clusters.demo.cas.a: must be a map of keys to values ({} for an empty one)'],
    ],
    [
      'a mistyped section',
      demo(named, '{ca: a}').replace('cas:', 'cass:'),
      ['clusters.demo.cass: unknown key "cass"; did you mean "cas"?'],
    ],
    [
      'the name of the CA in the signer',
      demo('{a: {subject: {commonName: A}}, b: {subject: {commonName: B}}}', '{ca: 1}'),
      [`${at}.ca: must be text: put it in quotes`],
    ],
    [
      'in the defaults',
      demo(named, '{ca: a}', 'defaults: {limits: 1}\n'),
      ['defaults.limits: must be a map of keys to values ({} for an empty one)'],
    ],
  ])('%s', (_, text, expected) => {
    const messages = problems(text).map((problem) => problem.replace(/^\d+:\d+ /, ''));
    expect(messages.toSorted()).toEqual([...expected].toSorted());
  });
});

/** `§` marks where the problem is to be shown: line and column are counted, not guessed. */
function marked(text: string): { text: string; place: string } {
  const before = text.split('§')[0] ?? '';
  const lines = before.split('\n');
  return { text: text.replace('§', ''), place: `${lines.length}:${(lines.at(-1) ?? '').length + 1}` };
}

describe('what must fit together', () => {
  const kubelet = 'kubernetes.io/kubelet-serving';
  const client = 'kubernetes.io/kube-apiserver-client';
  const fixed = (signer: string) => `is fixed by Kubernetes for ${signer} and cannot be set`;
  const nodes = 'names of nodes are given by the kubelet signers only';
  const at = (signer: string, rest = '') => `clusters.demo.profiles["${signer}"]${rest}`;

  test.each<readonly [string, Parameters<typeof file>[0], string, string]>([
    ['no CA', { cas: '', signer: client }, 'clusters.demo.cas', 'a cluster needs at least one CA'],
    [
      'a CA without a name',
      { cas: '§ca: {}', signer: client },
      'clusters.demo.cas.ca.subject.commonName',
      'is required',
    ],
    [
      'an algorithm that does not fit the key',
      { cas: 'ca: {subject: {commonName: x}, keySpec: P-384, signatureAlgorithm: §ECDSA_SHA_256}', signer: client },
      'clusters.demo.cas.ca.signatureAlgorithm',
      'a P-384 key signs with ECDSA_SHA_384',
    ],
    [
      'an RSA algorithm for a curve',
      { cas: 'ca: {subject: {commonName: x}, signatureAlgorithm: §RSASSA_PSS_SHA_256}', signer: client },
      'clusters.demo.cas.ca.signatureAlgorithm',
      'a P-256 key signs with ECDSA_SHA_256',
    ],
    [
      'an unknown CA',
      { signer: client, profile: '{ca: §other}' },
      at(client, '.ca'),
      'no CA of this cluster has that name (ca)',
    ],
    [
      'a choice of CAs',
      { cas: 'a: {subject: {commonName: A}}, b: {subject: {commonName: B}}', signer: `§${client}` },
      at(client, '.ca'),
      'is required where there is more than one CA',
    ],
    [
      'a lifetime under a minute',
      { signer: client, profile: '{maxTtl: §59s}' },
      at(client, '.maxTtl'),
      'must be at least 60s',
    ],
    [
      'an approval of nothing',
      { signer: client, more: `    approval: {${kubelet}: §manual}` },
      `clusters.demo.approval["${kubelet}"]`,
      'no profile of this cluster has that name',
    ],
    [
      'a reserved name',
      { signer: '§kubernetes.io/web' },
      at('kubernetes.io/web'),
      'names under kubernetes.io/ are reserved; the signers there are kube-apiserver-client, kube-apiserver-client-kubelet, kubelet-serving, legacy-unknown',
    ],
    [
      'an unknown provider',
      { signer: '§cluster.x-k8s.io/kubelet-serving-azure' },
      at('cluster.x-k8s.io/kubelet-serving-azure'),
      'names under cluster.x-k8s.io/ are those of attestation providers: kube-apiserver-client-kubelet-aws, kubelet-serving-aws, kube-apiserver-client-kubelet-aws-nitrotpm, kubelet-serving-aws-nitrotpm, kube-apiserver-client-kubelet-tpm, kubelet-serving-tpm, kube-apiserver-client-kubelet-x509, kubelet-serving-x509, kube-apiserver-client-kubelet-gce, kubelet-serving-gce, kube-apiserver-client-kubelet-gce-vtpm, kubelet-serving-gce-vtpm, kube-apiserver-client-kubelet-insecure',
    ],
    [
      'usages of an in-tree signer',
      { signer: client, profile: '{§usages: {allowed: [any]}}' },
      at(client, '.usages'),
      fixed(client),
    ],
    [
      'an issuer of a CA that is self-signed',
      { cas: 'ca: {subject: {commonName: x}, issuedBy: §ca}', signer: client },
      'clusters.demo.cas.ca.issuedBy',
      'is for CAs of kind: issued',
    ],
    [
      'no issuer',
      { cas: '§ca: {subject: {commonName: x}, kind: issued}', signer: client },
      'clusters.demo.cas.ca.issuedBy',
      'is required: the CA that signs the certificate of this one',
    ],
    [
      'an unknown issuer',
      { cas: 'ca: {subject: {commonName: x}, kind: issued, issuedBy: §root}', signer: client },
      'clusters.demo.cas.ca.issuedBy',
      'no CA of this cluster has that name (ca)',
    ],
    [
      'a CA that issues itself',
      { cas: 'ca: {subject: {commonName: x}, kind: issued, issuedBy: §ca}', signer: client },
      'clusters.demo.cas.ca.issuedBy',
      'leads to no root: these CAs issue each other',
    ],
    [
      'an issuer that may have no CA below it',
      {
        cas: 'ca: {subject: {commonName: x}, kind: issued, issuedBy: §root}, root: {subject: {commonName: r}}',
        signer: client,
        profile: '{ca: ca}',
      },
      'clusters.demo.cas.ca.issuedBy',
      'needs pathLen 1 or more in CA root: its certificate must permit this CA below it',
    ],
    [
      'an issuer of the same name',
      {
        cas: 'ca: {subject: {commonName: x}, kind: issued, issuedBy: §root}, root: {subject: {commonName: x}, pathLen: 1}',
        signer: client,
        profile: '{ca: ca}',
      },
      'clusters.demo.cas.ca.issuedBy',
      'has the same subject: verifiers tell CAs apart by their names',
    ],
    [
      'key material of a CA without an existing certificate',
      { cas: 'ca: {subject: {commonName: x}, keyMaterial: §imported}', signer: client },
      'clusters.demo.cas.ca.keyMaterial',
      'is for CAs of kind: imported, since an existing key has a certificate',
    ],
    [
      'a lifetime of a CA that another one decides',
      { cas: 'ca: {subject: {commonName: x}, kind: imported, validity: §30d}', signer: client },
      'clusters.demo.cas.ca.validity',
      'has no effect: the CA that signs the certificate decides it',
    ],
    [
      'names of an in-tree signer',
      { signer: kubelet, profile: '{sans: {§dns: [a]}}' },
      at(kubelet, '.sans.dns'),
      fixed(kubelet),
    ],
    [
      'finding 4: reserved names of kubelets from another signer',
      { signer: client, profile: '{sans: {§allowReserved: [etcd]}}' },
      at(client, '.sans.allowReserved'),
      'is for the kubelet serving signers',
    ],
    [
      'finding 4: an allowed name that is not reserved',
      { signer: kubelet, profile: '{sans: {allowReserved: [etcd, §node-1]}}' },
      at(kubelet, '.sans.allowReserved[1]'),
      'is not reserved: kubelets get it without being listed',
    ],
    [
      'finding 4: serving certificates that the relay would approve without proof',
      { signer: kubelet, more: `    approval: {${kubelet}: §approve}` },
      `clusters.demo.approval["${kubelet}"]`,
      'would give each node certificates for the names and addresses of all others: enforce attestation for this signer, leave approval to a person, or accept it with approveServingWithoutProof: true',
    ],
    [
      'common names of a kubelet signer',
      { signer: kubelet, profile: '{subject: {§commonNames: [a]}}' },
      at(kubelet, '.subject.commonNames'),
      fixed(kubelet),
    ],
    [
      'system names of a kubelet signer',
      { signer: kubelet, profile: '{subject: {§allowReserved: [system:x]}}' },
      at(kubelet, '.subject.allowReserved'),
      fixed(kubelet),
    ],
    [
      'a node as system name',
      { signer: client, profile: '{subject: {allowReserved: [§system:node:a]}}' },
      at(client, '.subject.allowReserved[0]'),
      nodes,
    ],
    [
      'all nodes as system name',
      { signer: client, profile: '{subject: {allowReserved: [§system:nodes]}}' },
      at(client, '.subject.allowReserved[0]'),
      nodes,
    ],
    [
      'a pattern as system name',
      { signer: client, profile: "{subject: {allowReserved: [§'system:*']}}" },
      at(client, '.subject.allowReserved[0]'),
      'must be an exact name; patterns never permit reserved names',
    ],
    [
      'a name that is not reserved',
      { signer: client, profile: '{subject: {allowReserved: [§admin]}}' },
      at(client, '.subject.allowReserved[0]'),
      'is not reserved; list it under commonNames or organizations',
    ],
    [
      'a reserved name that is every name',
      { signer: client, more: "    reservedNames: [a, §'**']" },
      'clusters.demo.reservedNames[1]',
      'is every name',
    ],
    [
      'an invalid reserved address',
      { signer: client, more: '    reservedAddresses: [10.0.0.0/8, §10.0.0.1/8]' },
      'clusters.demo.reservedAddresses[1]',
      'must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8',
    ],
    [
      'finding 6: more patterns than a name may be compared with',
      { signer: client, profile: `{requester: {§users: [${Array(257).fill('a').join()}]}}` },
      at(client, '.requester.users'),
      'must have at most 256 entries',
    ],
    [
      'all addresses',
      { signer: client, more: "    reservedAddresses: [§'::/0']" },
      'clusters.demo.reservedAddresses[0]',
      'is every address',
    ],
    [
      'a cluster domain with a dot at its end',
      { signer: client, more: '    clusterDomain: §cluster.local.' },
      'clusters.demo.clusterDomain',
      'must be a DNS name in lower case, without a dot at its end',
    ],
  ])('%s', (_, written, path, message) => {
    const { text, place } = marked(file(written).replace('    cas: {}', '    §cas: {}'));
    expect(problems(text)).toEqual([`${place} ${path}: ${message}`]);
  });

  test.each([
    ['no usages', '{sans: {dns: [a]}}', '.usages.allowed', 'is required: a request must ask for a usage'],
    [
      'cert sign',
      '{sans: {dns: [a]}, usages: {§allowed: [server auth, cert sign]}}',
      '.usages.allowed',
      'no leaf certificate may sign certificates',
    ],
    [
      'no extended usage',
      '{sans: {dns: [a]}, usages: {§allowed: [digital signature]}}',
      '.usages.allowed',
      'must hold an extended usage such as server auth: without one a certificate is valid for every purpose',
    ],
    [
      'a required usage that is not allowed',
      '{sans: {dns: [a]}, usages: {allowed: [server auth], required: [§any]}}',
      '.usages.required[0]',
      'is not among the allowed ones',
    ],
    [
      'system: in a pattern',
      "{usages: {allowed: [any]}, subject: {commonNames: [§'system:*']}}",
      '.subject.commonNames[0]',
      'names reserved names only, which patterns never permit; list exact ones under allowReserved',
    ],
    [
      'no name',
      '{usages: {allowed: [any]}}',
      '',
      'permits no certificate: list common names under subject, or subjectAltNames under sans',
    ],
    [
      'a required common name that no rule permits',
      '{usages: {allowed: [any]}, sans: {dns: [a]}, subject: {commonNameRequired: §true}}',
      '.subject.commonNameRequired',
      'nothing could satisfy it: no common name is permitted',
    ],
    [
      'a required subjectAltName that no rule permits',
      '{usages: {allowed: [any]}, subject: {commonNames: [a]}, sans: {required: §true}}',
      '.sans.required',
      'nothing could satisfy it: no name is permitted',
    ],
    [
      'not a DNS name',
      "{usages: {allowed: [any]}, sans: {dns: [§'a b']}}",
      '.sans.dns[0]',
      'is not a DNS name or a pattern of one',
    ],
    [
      'not a mail address',
      '{usages: {allowed: [any]}, sans: {email: [§a]}}',
      '.sans.email[0]',
      'must be an address with one @, such as *@example.com',
    ],
    [
      'not a block',
      '{usages: {allowed: [any]}, sans: {ip: [10.0.0.0/8, §10.0.0.1/8]}}',
      '.sans.ip[1]',
      'must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8',
    ],
    [
      'not a URI',
      "{usages: {allowed: [any]}, sans: {uri: [§'//a']}}",
      '.sans.uri[0]',
      'must begin with a scheme, such as spiffe://example.com/*',
    ],
  ])('a signer of one’s own: %s', (_, profile, path, message) => {
    // Without a mark of its own, a profile is wrong as a whole.
    const signer = profile.includes('§') ? 'k8s.example.com/web' : '§k8s.example.com/web';
    const { text, place } = marked(file({ signer, profile }));
    expect(problems(text)).toEqual([`${place} ${at('k8s.example.com/web', path)}: ${message}`]);
  });

  test('a CA that would end after the year 9999', () => {
    const cas = (validity: string) => `ca: {validity: ${validity}, subject: {commonName: CA}}`;
    const profile = '{}';
    const { text, place } = marked(file({ cas: cas('§365001d'), signer: client, profile }));
    expect(problems(text)).toEqual([
      `${place} clusters.demo.cas.ca.validity: must be at most 365000d, a thousand years: a certificate ends in the year 9999 at the latest`,
    ]);
    expect(warnings(file({ cas: cas('365000d'), signer: client, profile }))).toEqual([]);
  });

  test('a mistake in the defaults is told once, where it stands', () => {
    const { text, place } = marked(`version: 1
defaults:
  profiles: {${client}: {maxTtl: §1s}}
clusters:
  a: {cas: {ca: {subject: {commonName: A}}}}
  b: {cas: {ca: {subject: {commonName: B}}}}
`);
    expect(problems(text)).toEqual([`${place} defaults.profiles["${client}"].maxTtl: must be at least 60s`]);
  });
});

describe('worth a second look', () => {
  const client = 'kubernetes.io/kube-apiserver-client';
  test.each([
    ['nothing', { profile: web }, []],
    [
      'system:masters',
      { signer: client, profile: '{subject: {allowReserved: [system:masters]}}' },
      [`6 clusters.demo.profiles["${client}"].subject.allowReserved[0]`],
    ],
    [
      'a lifetime beyond the CA’s',
      { cas: 'ca: {validity: 1d, subject: {commonName: CA}}', signer: client, profile: '{maxTtl: 2d}' },
      [`6 clusters.demo.profiles["${client}"].maxTtl`],
    ],
    [
      'logins by a custom signer',
      {
        signer: client,
        more: `      k8s.example.com/a: {usages: {allowed: [client auth]}, subject: {commonNames: ['*']}}`,
      },
      ['7 clusters.demo.profiles["k8s.example.com/a"].ca'],
    ],
    ['a custom signer that makes no logins', { signer: client, more: `      k8s.example.com/a: ${web}` }, []],
  ])('%s', (_, written, expected) => {
    expect(warnings(file(written))).toEqual(expected);
  });
});

test('the default cluster is the four in-tree signers on one CA', () => {
  const demo = defaultCluster('demo', { maxTtlSeconds: 86_400 });
  expect([...demo.profiles.values()].map(({ kind, ca, maxTtlSeconds }) => [kind, ca, maxTtlSeconds])).toEqual([
    ['kube-apiserver-client', 'ca', 86_400],
    ['kube-apiserver-client-kubelet', 'ca', 86_400],
    ['kubelet-serving', 'ca', 86_400],
    ['legacy-unknown', 'ca', 86_400],
  ]);
  expect([...demo.cas.keys()]).toEqual(['ca']);
  expect([...defaultCluster('demo', { maxTtlSeconds: 60, ca: 'root' }).cas.keys()]).toEqual(['root']);
  expect(() => defaultCluster('demo', { maxTtlSeconds: 59 })).toThrow(RangeError);
});

test('the JSON Schema describes every key and allows no other', () => {
  interface Schema {
    readonly description?: string;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly additionalProperties?: Schema | boolean;
  }
  const undescribed: string[] = [];
  const open: string[] = [];
  const walk = (schema: Schema, path: string): void => {
    if (schema.properties !== undefined && schema.additionalProperties !== false) open.push(path);
    for (const [key, value] of Object.entries(schema.properties ?? {})) {
      if (value.description === undefined) undescribed.push(`${path}.${key}`);
      walk(value, `${path}.${key}`);
    }
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}.*`);
  };
  const schema: Schema = configurationSchema();
  walk(schema, '');
  expect(undescribed).toEqual([]);
  expect(open).toEqual([]);
  expect(Object.keys(schema.properties ?? {})).toEqual(['version', 'defaults', 'clusters']);
});
