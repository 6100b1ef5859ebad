import { fc } from '../../../harness/determinism/properties.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { describe, expect, test } from 'vitest';
import { checkProfile, defaultSignerName, explainProfile } from '../../../../core/policy/check-profile.ts';
import type { Profile, ProfileKind } from '../../../../core/policy/profile.ts';
import { knownUsages } from '../../../../core/x509/key-usages.ts';
import { acceptable, customProfile, customRules, object, profile, request } from '../questions.ts';
import type { Asked } from '../questions.ts';
import { ranges } from '../../../harness/attestation/address-ranges.ts';

function check(given: Profile, asked: Asked): { codes: string[]; messages: string[] } {
  const violations = checkProfile(given, object(asked), request(asked));
  return { codes: violations.map(({ code }) => code), messages: violations.map(({ message }) => message) };
}

const kinds = Object.keys(acceptable) as (keyof typeof acceptable)[];
const nodes = { commonName: 'system:node:n1', organizations: ['system:nodes'] };

test.each(kinds)('%s: the ordinary request passes', (kind) => {
  expect(check(profile(kind), acceptable[kind]).messages).toEqual([]);
});

/** Every row of docs/signers.md: what is changed in the ordinary request, and the in-tree text of the refusal. */
describe('in-tree rules, in order and in their words', () => {
  const clientUsages = 'usages did not match [client auth digital signature key encipherment]';
  const servingUsages = 'usages did not match [digital signature key encipherment server auth]';
  const notNodes = 'subject organization is not system:nodes';
  const notNode = 'subject common name does not begin with system:node:';
  const rows: readonly [ProfileKind & keyof typeof acceptable, string, Asked, readonly string[]][] = [
    [
      'kube-apiserver-client',
      'every permitted usage',
      { usages: ['digital signature', 'key encipherment', 'client auth'] },
      [],
    ],
    ['kube-apiserver-client', 'a usage twice', { usages: ['client auth', 'client auth'] }, []],
    [
      'kube-apiserver-client',
      'names of every type',
      { sans: { dns: ['a'], email: ['a@b'], ip: ['10.0.0.1'], uri: ['a:b'] } },
      [],
    ],
    [
      'kube-apiserver-client',
      'no subject, but a name',
      { commonName: '', organizations: [], sans: { dns: ['a'] } },
      [],
    ],
    [
      'kube-apiserver-client',
      'a foreign usage',
      { usages: ['client auth', 'server auth'] },
      ['invalid usage for client certificate: server auth'],
    ],
    [
      'kube-apiserver-client',
      'an unknown usage',
      { usages: ['client auth', 'x'] },
      ['invalid usage for client certificate: x'],
    ],
    [
      'kube-apiserver-client',
      'foreign usages in their order, without client auth',
      { usages: ['server auth', 'any', 'server auth'] },
      [
        'invalid usage for client certificate: server auth',
        'invalid usage for client certificate: any',
        'missing required usage for client certificate: client auth',
      ],
    ],
    [
      'kube-apiserver-client',
      'no client auth',
      { usages: ['digital signature'] },
      ['missing required usage for client certificate: client auth'],
    ],
    [
      'kube-apiserver-client',
      'no usages',
      { usages: [] },
      ['missing required usage for client certificate: client auth'],
    ],
    ['kube-apiserver-client-kubelet', 'no key encipherment', { usages: ['client auth', 'digital signature'] }, []],
    [
      'kube-apiserver-client-kubelet',
      'a usage twice',
      { usages: ['client auth', 'digital signature', 'client auth'] },
      [],
    ],
    ['kube-apiserver-client-kubelet', 'no organization', { organizations: [] }, [notNodes]],
    ['kube-apiserver-client-kubelet', 'another organization', { organizations: ['nodes'] }, [notNodes]],
    ['kube-apiserver-client-kubelet', 'one organization more', { organizations: ['system:nodes', 'dev'] }, [notNodes]],
    [
      'kube-apiserver-client-kubelet',
      'the organization twice',
      { organizations: ['system:nodes', 'system:nodes'] },
      [notNodes],
    ],
    ['kube-apiserver-client-kubelet', 'DNS', { sans: { dns: ['n1'] } }, ['DNS subjectAltNames are not allowed']],
    ['kube-apiserver-client-kubelet', 'email', { sans: { email: ['a@b'] } }, ['Email subjectAltNames are not allowed']],
    ['kube-apiserver-client-kubelet', 'IP', { sans: { ip: ['10.0.0.1'] } }, ['IP subjectAltNames are not allowed']],
    ['kube-apiserver-client-kubelet', 'URI', { sans: { uri: ['a:b'] } }, ['URI subjectAltNames are not allowed']],
    ['kube-apiserver-client-kubelet', 'another common name', { commonName: 'n1' }, [notNode]],
    ['kube-apiserver-client-kubelet', 'server auth', { usages: ['server auth', 'digital signature'] }, [clientUsages]],
    [
      'kube-apiserver-client-kubelet',
      'one usage more',
      { usages: ['client auth', 'digital signature', 'server auth'] },
      [clientUsages],
    ],
    [
      'kube-apiserver-client-kubelet',
      'one usage less',
      { usages: ['client auth', 'key encipherment'] },
      [clientUsages],
    ],
    ['kube-apiserver-client-kubelet', 'no usages', { usages: [] }, [clientUsages]],
    [
      'kube-apiserver-client-kubelet',
      'everything at once',
      {
        commonName: 'n1',
        organizations: [],
        sans: { dns: ['a'], email: ['a@b'], ip: ['10.0.0.1'], uri: ['a:b'] },
        usages: [],
      },
      [
        notNodes,
        'DNS subjectAltNames are not allowed',
        'Email subjectAltNames are not allowed',
        'IP subjectAltNames are not allowed',
        'URI subjectAltNames are not allowed',
        notNode,
        clientUsages,
      ],
    ],
    ['kubelet-serving', 'DNS only', { sans: { dns: ['n1'] } }, []],
    ['kubelet-serving', 'IP only', { sans: { ip: ['10.0.0.1'] } }, []],
    ['kubelet-serving', 'no key encipherment', { usages: ['server auth', 'digital signature'] }, []],
    ['kubelet-serving', 'another organization', { organizations: ['nodes'] }, [notNodes]],
    ['kubelet-serving', 'no names', { sans: {} }, ['DNS or IP subjectAltName is required']],
    ['kubelet-serving', 'email', { sans: { dns: ['n1'], email: ['a@b'] } }, ['Email subjectAltNames are not allowed']],
    ['kubelet-serving', 'URI', { sans: { dns: ['n1'], uri: ['a:b'] } }, ['URI subjectAltNames are not allowed']],
    [
      'kubelet-serving',
      'client auth',
      { usages: ['client auth', 'digital signature', 'key encipherment'] },
      [servingUsages],
    ],
    [
      'kubelet-serving',
      'one usage more',
      { usages: ['server auth', 'digital signature', 'client auth'] },
      [servingUsages],
    ],
    ['kubelet-serving', 'another common name', { commonName: 'system:nodes:n1x' }, [notNode]],
    [
      'kubelet-serving',
      'everything at once',
      { commonName: 'n1', organizations: [], sans: { email: ['a@b'], uri: ['a:b'] }, usages: [] },
      [
        notNodes,
        'DNS or IP subjectAltName is required',
        'Email subjectAltNames are not allowed',
        'URI subjectAltNames are not allowed',
        servingUsages,
        notNode,
      ],
    ],
    ['legacy-unknown', 'any usage', { usages: [...knownUsages] }, []],
    [
      'legacy-unknown',
      'names of every type',
      { sans: { dns: ['a'], email: ['a@b'], ip: ['10.0.0.1'], uri: ['a:b'] } },
      [],
    ],
  ];
  test.each(rows)('%s with %s', (kind, _, changed, messages) => {
    const asked = { ...acceptable[kind], ...changed };
    const violations = checkProfile(profile(kind), object(asked), request(asked));
    const inTree = violations.filter(({ code }) => code === 'SignerValidationFailure');
    expect(inTree.map(({ message }) => message)).toEqual(messages);
    // Nothing of ours comes before the in-tree text, and nothing of ours where the in-tree signer has nothing to say.
    expect(violations.slice(0, Math.max(messages.length, 1))).toEqual(inTree.slice(0, messages.length));
  });
});

describe('deviation 2: keys and digests', () => {
  const rsa = (bits: number): Asked => ({ key: { kind: 'RSA', bits, description: `RSA ${bits}` } });
  const rows: readonly [string, Asked, readonly string[]][] = [
    ['RSA 2048', rsa(2048), []],
    ['RSA 8192', rsa(8192), []],
    ['RSA 2047', rsa(2047), ['KeyNotPermitted']],
    ['RSA 8193', rsa(8193), ['KeyNotPermitted']],
    ['P-521', { key: { kind: 'P-521', bits: 521 } }, []],
    ['P-224', { key: { kind: undefined, bits: 224, description: 'ECDSA P-224' } }, ['KeyNotPermitted']],
    ['Ed25519', { key: { kind: 'Ed25519', bits: 256 }, signatureHash: undefined }, []],
    ['no digest, not Ed25519', { signatureHash: undefined }, ['KeyNotPermitted']],
    ['SHA-384', { signatureHash: 'SHA-384' }, []],
    ['SHA-512', { signatureHash: 'SHA-512' }, []],
    ['SHA-1', { signatureHash: 'SHA-1' }, ['KeyNotPermitted']],
    ['MD5', { signatureHash: 'MD5' }, ['KeyNotPermitted']],
    ['SHA-224', { signatureHash: 'SHA-224' }, ['KeyNotPermitted']],
    ['RSA 1024 with SHA-1', { ...rsa(1024), signatureHash: 'SHA-1' }, ['KeyNotPermitted', 'KeyNotPermitted']],
  ];
  test.each(rows.flatMap((row) => kinds.map((kind) => [...row, kind] as const)))(
    '%s: %j → %j for %s',
    (_, changed, codes, kind) => {
      expect(check(profile(kind), { ...acceptable[kind], ...changed }).codes).toEqual(codes);
    },
  );

  test('a kind the profile does not list', () => {
    const given = profile('legacy-unknown', { keys: ['P-256'] });
    expect(check(given, { ...acceptable['legacy-unknown'], ...rsa(4096) })).toEqual({
      codes: ['KeyNotPermitted'],
      messages: ['key kind RSA 4096 is not permitted (P-256)'],
    });
  });
});

describe('deviations 3, 7 and 14: who may be named', () => {
  const client = acceptable['kube-apiserver-client'];
  const rows: readonly [string, Profile, Asked, readonly string[]][] = [
    [
      'system:masters unlisted',
      profile('kube-apiserver-client'),
      { ...client, organizations: ['system:masters'] },
      ['NameReserved'],
    ],
    [
      'system:masters listed',
      profile('kube-apiserver-client', { allowReserved: ['system:masters'] }),
      { ...client, organizations: ['system:masters'] },
      [],
    ],
    [
      'a longer name than listed',
      profile('kube-apiserver-client', { allowReserved: ['system:masters'] }),
      { ...client, organizations: ['system:masters2'] },
      ['NameReserved'],
    ],
    [
      'a component as common name',
      profile('kube-apiserver-client'),
      { ...client, commonName: 'system:kube-scheduler' },
      ['NameReserved'],
    ],
    [
      'a component listed',
      profile('kube-apiserver-client', { allowReserved: ['system:kube-scheduler'] }),
      { ...client, commonName: 'system:kube-scheduler' },
      [],
    ],
    [
      'a node, even if listed',
      profile('kube-apiserver-client', { allowReserved: ['system:node:n1', 'system:nodes'] }),
      { ...client, ...nodes },
      ['NameReserved', 'NameReserved'],
    ],
    [
      'both places at once',
      profile('kube-apiserver-client'),
      { ...client, commonName: 'system:admin', organizations: ['a', 'system:x', 'system:y'] },
      ['NameReserved', 'NameReserved', 'NameReserved'],
    ],
    ['system without a colon', profile('kube-apiserver-client'), { ...client, commonName: 'systematic' }, []],
    [
      'another spelling: whatever compares names as RFC 5280 §7.1 says ignores case',
      profile('kube-apiserver-client'),
      { ...client, commonName: 'System:masters' },
      ['NameReserved'],
    ],
    [
      'legacy-unknown',
      profile('legacy-unknown'),
      { ...acceptable['legacy-unknown'], ...nodes },
      ['NameReserved', 'NameReserved'],
    ],
    [
      'a kubelet with system:masters',
      profile('kubelet-serving'),
      { ...acceptable['kubelet-serving'], organizations: ['system:nodes', 'system:masters'] },
      ['SignerValidationFailure', 'NameReserved'],
    ],
    [
      'a kubelet cannot list it either way round',
      profile('kubelet-serving'),
      { ...acceptable['kubelet-serving'], commonName: 'system:nodes' },
      ['SignerValidationFailure', 'NameReserved'],
    ],
    [
      'a node name as organization',
      profile('kubelet-serving'),
      { ...acceptable['kubelet-serving'], organizations: ['system:node:n1'] },
      ['SignerValidationFailure', 'NameReserved'],
    ],
  ];
  test.each(rows)('%s', (_, given, asked, codes) => {
    expect(check(given, asked).codes).toEqual(codes);
  });
});

test.each([
  ['kube-apiserver-client-kubelet', 'system:node:', ['NameReserved']],
  ['kube-apiserver-client-kubelet', 'system:node:UPPER', ['NameReserved']],
  ['kubelet-serving', 'system:node:a/b', ['NameReserved']],
  ['kubelet-serving', 'system:node:ip-10-0-0-1.ec2.internal', []],
] as const)('deviation 9: %s for %s → %j', (kind, commonName, codes) => {
  expect(check(profile(kind), { ...acceptable[kind], commonName }).codes).toEqual(codes);
});

test.each<[string, keyof typeof acceptable, Asked, readonly string[]]>([
  ['no name at all', 'kube-apiserver-client', {}, ['SubjectNotPermitted']],
  ['a subject', 'kube-apiserver-client', { commonName: 'a' }, []],
  ['a subjectAltName', 'kube-apiserver-client', { sans: { uri: ['a:b'] } }, []],
  [
    'an attribute the certificate drops',
    'legacy-unknown',
    { otherAttributes: ['1.2.840.113549.1.9.1'] },
    ['SubjectNotPermitted'],
  ],
])('deviation 12: a certificate with %s', (_, kind, asked, codes) => {
  const named = { commonName: '', organizations: [], sans: {}, ...asked };
  expect(check(profile(kind), { ...acceptable[kind], ...named }).codes).toEqual(codes);
});

test.each(kinds)('deviation 4: %s refuses the name types that no signer signs, by name', (kind) => {
  const asked = { ...acceptable[kind], sans: { ...acceptable[kind].sans, unsupported: ['otherName', 'registeredID'] } };
  expect(check(profile(kind), asked)).toEqual({
    codes: ['SanNotPermitted', 'SanNotPermitted'],
    messages: [
      'a subjectAltName of type otherName is not signed',
      'a subjectAltName of type registeredID is not signed',
    ],
  });
});

test.each([
  ['none', [], ['usages are empty']],
  [
    'unknown ones',
    ['client auth', 'coffee', 'constructor'],
    ['usage "coffee" is unknown', 'usage "constructor" is unknown'],
  ],
])('deviations 7 and 8: legacy-unknown with usages: %s', (_, usages, messages) => {
  expect(check(profile('legacy-unknown'), { commonName: 'a', usages })).toEqual({
    codes: messages.map(() => 'UsageNotPermitted'),
    messages,
  });
});

test.each([
  ['not limited', [], [], true],
  ['by user', ['alice'], [], true],
  ['by user pattern', ['a*'], [], true],
  ['by group', [], ['system:auth*'], true],
  ['by either', ['bob'], ['system:authenticated'], true],
  ['by none', ['bob'], ['dev'], false],
  ['a user is no group', ['system:authenticated'], ['alice'], false],
])('requester %s: %j %j → %s', (_, users, groups, passes) => {
  const given = profile('legacy-unknown', { requester: { users, groups } });
  expect(check(given, acceptable['legacy-unknown']).codes).toEqual(passes ? [] : ['RequesterNotAllowed']);
});

test.each(kinds)('finding 6: a requester that %s does not permit gets that problem alone', (kind) => {
  const given = profile(kind, { requester: { users: ['bob'], groups: [] } });
  // Nothing else about it would pass either.
  const asked: Asked = { commonName: 'system:admin', usages: [], sans: { unsupported: ['otherName'] } };
  const refused = {
    codes: ['RequesterNotAllowed'],
    messages: ['requester "alice" may not use this signer'],
  };
  expect(check(given, asked)).toEqual(refused);
  expect(explainProfile(given, object(asked), request(asked)).map(({ check: rule }) => rule)).toEqual([
    'the requester is one the profile names, if it names any',
  ]);
});

describe('a signer of one’s own', () => {
  const web: Asked = { sans: { dns: ['web.example.com'] }, usages: ['digital signature', 'server auth'] };
  const rows: readonly [string, Parameters<typeof customProfile>[0], Asked, readonly string[]][] = [
    ['what it lists', { sans: { dns: ['*.example.com'] } }, web, []],
    [
      'a foreign usage',
      { sans: { dns: ['*'] } },
      { ...web, usages: ['server auth', 'client auth'] },
      ['UsageNotPermitted'],
    ],
    [
      'a required usage missing',
      { sans: { dns: ['*'] }, usages: { required: ['digital signature'] } },
      { ...web, usages: ['server auth'] },
      ['UsageNotPermitted'],
    ],
    ['no extended usage', { sans: { dns: ['*'] } }, { ...web, usages: ['digital signature'] }, ['UsageNotPermitted']],
    ['no usages at all', { sans: { dns: ['*'] } }, { ...web, usages: [] }, ['UsageNotPermitted', 'UsageNotPermitted']],
    ['a common name without a list', { sans: { dns: ['*'] } }, { ...web, commonName: 'web' }, ['SubjectNotPermitted']],
    [
      'a common name that matches',
      { sans: { dns: ['*'] }, subject: { commonNames: ['w*'] } },
      { ...web, commonName: 'web' },
      [],
    ],
    [
      'a common name required',
      { sans: { dns: ['*'] }, subject: { commonNames: ['w*'], commonNameRequired: true } },
      web,
      ['SubjectNotPermitted'],
    ],
    [
      'an organization without a list',
      { sans: { dns: ['*'] } },
      { ...web, organizations: ['dev'] },
      ['SubjectNotPermitted'],
    ],
    [
      'one organization of two',
      { sans: { dns: ['*'] }, subject: { organizations: ['dev'] } },
      { ...web, organizations: ['dev', 'ops'] },
      ['SubjectNotPermitted'],
    ],
    [
      'an attribute no profile can name',
      { sans: { dns: ['*'] } },
      { ...web, otherAttributes: ['2.5.4.11'] },
      ['SubjectNotPermitted'],
    ],
    [
      'two common names',
      { sans: { dns: ['*'] }, subject: { commonNames: ['*'] } },
      { ...web, commonName: 'a', otherAttributes: ['2.5.4.3'] },
      ['SubjectNotPermitted'],
    ],
    ['another DNS name', { sans: { dns: ['*.example.org'] } }, web, ['SanNotPermitted']],
    ['a type without a list', { sans: { dns: ['*'] } }, { ...web, sans: { ip: ['10.0.0.1'] } }, ['SanNotPermitted']],
    ['an address in the block', { sans: { ip: ranges('10.0.0.0/8') } }, { ...web, sans: { ip: ['10.0.0.1'] } }, []],
    [
      'an address outside',
      { sans: { ip: ranges('10.0.0.0/8') } },
      { ...web, sans: { ip: ['11.0.0.1'] } },
      ['SanNotPermitted'],
    ],
    [
      'one of each type too many',
      {},
      { ...web, sans: { dns: ['a'], email: ['a@b'], ip: ['10.0.0.1'], uri: ['a:b'] } },
      Array<string>(4).fill('SanNotPermitted'),
    ],
    [
      'a mail address and a URI',
      { sans: { email: ['*@example.com'], uri: ['spiffe://example.com/*'] } },
      { ...web, sans: { email: ['a@example.com'], uri: ['spiffe://example.com/web'] } },
      [],
    ],
    [
      'a name required',
      { sans: { dns: ['*'], required: true } },
      { ...web, sans: {}, organizations: ['a'] },
      ['SubjectNotPermitted', 'SanNotPermitted'],
    ],
    [
      'no name where none is required',
      {},
      { ...web, commonName: '', organizations: [], sans: {} },
      ['SubjectNotPermitted'],
    ],
    [
      'a system: name under a pattern as wide as can be',
      { subject: { commonNames: ['*'], organizations: ['*'] } },
      { ...web, sans: {}, commonName: 'system:admin', organizations: ['system:masters'] },
      ['NameReserved', 'NameReserved'],
    ],
  ];
  test.each(rows)('%s', (_, parts, asked, codes) => {
    expect(check(customProfile(parts), asked).codes).toEqual(codes);
  });

  test('a listed system: name needs no pattern', () => {
    const given = profile('custom', { custom: customRules({ sans: { dns: ['*'] } }), allowReserved: ['system:web'] });
    expect(check(given, { ...web, commonName: 'system:web' }).codes).toEqual([]);
  });

  test('without rules nothing is permitted', () => {
    expect(check(profile('custom'), web).codes).toContain('UsageNotPermitted');
  });
});

describe('who may ask', () => {
  const node = acceptable['kube-apiserver-client-kubelet'];
  const itself = { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  const bootstrap = ['system:bootstrappers', 'system:bootstrappers:*'];
  const rows: readonly [string, Profile['requester'], Asked, boolean][] = [
    ['the node itself', { users: [], groups: [], nodeItself: true }, itself, true],
    ['the node itself, where groups are named too', { users: [], groups: bootstrap, nodeItself: true }, itself, true],
    ['the node itself, where only groups are', { users: [], groups: bootstrap }, itself, false],
    [
      'a bootstrap token',
      { users: [], groups: bootstrap, nodeItself: true },
      { groups: ['system:bootstrappers:x'] },
      true,
    ],
    ['a token file', { users: [], groups: bootstrap, nodeItself: true }, { groups: ['system:bootstrappers'] }, true],
    ['another group', { users: [], groups: bootstrap, nodeItself: true }, { groups: ['system:bootstrappersx'] }, false],
    ['another node', { users: [], groups: [], nodeItself: true }, { ...itself, username: 'system:node:n2' }, false],
    ['a longer name', { users: [], groups: [], nodeItself: true }, { ...itself, username: 'system:node:n11' }, false],
    ['the node in no group', { users: [], groups: [], nodeItself: true }, { ...itself, groups: [] }, false],
    ['the group alone', { users: [], groups: [], nodeItself: true }, { ...itself, username: 'n1' }, false],
    ['a member of a wide group', { users: [], groups: [], nodeItself: true }, { groups: ['system:masters'] }, false],
  ];
  test.each(rows)('%s', (_, requester, asked, passes) => {
    const given = profile('kube-apiserver-client-kubelet', { requester });
    expect(check(given, { ...node, ...asked }).codes).toEqual(passes ? [] : ['RequesterNotAllowed']);
  });

  test('a user with the very name asked for is no node', () => {
    const given = profile('kube-apiserver-client', { requester: { users: [], groups: [], nodeItself: true } });
    const asked = { ...acceptable['kube-apiserver-client'], username: 'alice', groups: ['system:nodes'] };
    expect(check(given, asked).codes).toEqual(['RequesterNotAllowed']);
  });
});

/** No in-tree reason where no in-tree signer answers; the texts are the same. */
describe('in-tree rules of signers that are not in-tree', () => {
  const rows: readonly [ProfileKind & keyof typeof acceptable, Asked, readonly string[]][] = [
    ['kube-apiserver-client-kubelet', { organizations: ['dev'] }, ['SubjectNotPermitted']],
    ['kube-apiserver-client-kubelet', { commonName: 'n1' }, ['SubjectNotPermitted']],
    [
      'kube-apiserver-client-kubelet',
      { sans: { dns: ['a'], email: ['a@b'], ip: ['10.0.0.1'], uri: ['a:b'] } },
      Array<string>(4).fill('SanNotPermitted'),
    ],
    ['kube-apiserver-client-kubelet', { usages: ['server auth'] }, ['UsageNotPermitted']],
    ['kubelet-serving', { organizations: ['dev'] }, ['SubjectNotPermitted']],
    ['kubelet-serving', { commonName: 'n1' }, ['SubjectNotPermitted']],
    ['kubelet-serving', { sans: {} }, ['SanNotPermitted']],
    ['kubelet-serving', { sans: { dns: ['a'], email: ['a@b'], uri: ['a:b'] } }, ['SanNotPermitted', 'SanNotPermitted']],
    ['kubelet-serving', { usages: ['client auth'] }, ['UsageNotPermitted']],
  ];
  test.each(rows)('%s %j', (kind, changed, codes) => {
    const elsewhere = profile(kind, { signerName: `cluster.x-k8s.io/${kind}-aws` });
    const asked = { ...acceptable[kind], ...changed };
    expect(check(elsewhere, asked)).toEqual({ codes, messages: check(profile(kind), asked).messages });
    expect(check(profile(kind), asked).codes).toEqual(codes.map(() => 'SignerValidationFailure'));
    expect(
      explainProfile(elsewhere, object(asked), request(asked)).flatMap(({ violations }) =>
        violations.map(({ code }) => code),
      ),
    ).toEqual(codes);
  });
});

/** Names as an attacker would choose them, and some that are fine. */
const names = fc.oneof(
  fc.constantFrom(
    'system:masters',
    'system:nodes',
    'system:node:n1',
    'system:node:',
    'system:kube-scheduler',
    'system:',
    'alice',
    '',
  ),
  fc.string().map((tail) => `system:${tail}`),
  fc.string(),
);
const profiles = fc
  .record({
    kind: fc.constantFrom<ProfileKind>(...kinds, 'custom'),
    allowReserved: fc.array(names, { maxLength: 3 }), // even such as no configuration can hold
  })
  .map(({ kind, allowReserved }) =>
    profile(kind, { allowReserved, subject: { commonNames: ['*'], organizations: ['*'] }, custom: customRules() }),
  );
const questions = fc.record({
  commonName: names,
  organizations: fc.oneof(fc.constant(['system:nodes']), fc.array(names, { maxLength: 3 })),
  usages: fc.oneof(
    fc.constantFrom(['client auth', 'digital signature'], ['server auth', 'digital signature']),
    fc.array(fc.constantFrom(...knownUsages), { maxLength: 3 }),
  ),
  sans: fc.constantFrom({}, { dns: ['n1'] }),
});

/** Written apart from the rules: who may be named, as architecture.md says it. */
function mayHold(given: Profile, commonName: string, organizations: readonly string[]): boolean {
  if (given.kind === 'kubelet-serving' || given.kind === 'kube-apiserver-client-kubelet')
    return organizations.join() === 'system:nodes' && /^system:node:[a-z0-9]/.test(commonName);
  return [commonName, ...organizations].every(
    (name) => !/^system:node(s$|:)/.test(name) && (!name.startsWith('system:') || given.allowReserved.includes(name)),
  );
}

test('a request that passes never holds a reserved name, and always a usage', () => {
  const passed = new Map<ProfileKind, number>();
  fc.assert(
    fc.property(profiles, questions, (given, asked) => {
      if (check(given, asked).codes.length > 0) return;
      passed.set(given.kind, (passed.get(given.kind) ?? 0) + 1);
      expect(asked.usages.length).toBeGreaterThan(0);
      expect(mayHold(given, asked.commonName, asked.organizations)).toBe(true);
    }),
    { numRuns: byTier({ default: 5_000, deep: 20_000 }) },
  );
  // The property says nothing about a kind that never passes.
  expect([...passed.keys()].sort()).toEqual([...kinds, 'custom'].sort());
});

test('explaining is checking, with what was seen', () => {
  fc.assert(
    fc.property(profiles, questions, (given, asked) => {
      const findings = explainProfile(given, object(asked), request(asked));
      expect(findings.flatMap(({ violations }) => violations)).toEqual(
        checkProfile(given, object(asked), request(asked)),
      );
      for (const { check: what, observed } of findings) expect([what, observed]).not.toContain('');
      // What does not apply is folded away: a violation among it would be hidden.
      expect(findings.filter(({ applies, violations }) => !applies && violations.length > 0)).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('a hostile list makes a short message without control characters', () => {
  const usages = Array.from({ length: 10_000 }, (_, index) => `${index}\n\u001b[31m\u202e${'x'.repeat(500)}`);
  const { messages } = check(profile('kube-apiserver-client'), { ...acceptable['kube-apiserver-client'], usages });
  const message = messages.join('; ');
  expect(message.length).toBeLessThan(2_000);
  expect(message).not.toMatch(/\p{C}/u);
  expect(message).toContain('… and 9992 more');
});

describe('the signer of a v1beta1 request that names none', () => {
  test.each([
    ['a kubelet client', acceptable['kube-apiserver-client-kubelet'], 'kubernetes.io/kube-apiserver-client-kubelet'],
    ['a kubelet server', acceptable['kubelet-serving'], 'kubernetes.io/kubelet-serving'],
    ['anything else', acceptable['kube-apiserver-client'], 'kubernetes.io/legacy-unknown'],
    [
      'a kubelet client with a name too many',
      { ...acceptable['kube-apiserver-client-kubelet'], sans: { dns: ['n1'] } },
      'kubernetes.io/legacy-unknown',
    ],
    ['no usages', { ...acceptable['kubelet-serving'], usages: [] }, 'kubernetes.io/legacy-unknown'],
    // Ours refuses these later, under the name the API server would have given.
    [
      'an empty node name',
      { ...acceptable['kubelet-serving'], commonName: 'system:node:' },
      'kubernetes.io/kubelet-serving',
    ],
    [
      'a weak key',
      { ...acceptable['kubelet-serving'], key: { kind: 'RSA', bits: 1024 } as const },
      'kubernetes.io/kubelet-serving',
    ],
  ])('%s', (_, asked, signerName) => {
    expect(defaultSignerName(object(asked), request(asked))).toBe(signerName);
  });
});
