/** Which names a signer for users gives: from the configuration file and the bytes of the request to the refusal. */
import { describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import type { Violation } from '../../../../core/outcome/outcome.ts';
import { checkProfile } from '../../../../core/policy/check-profile.ts';
import type { Profile } from '../../../../core/policy/profile.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { object } from '../questions.ts';

const users = 'kubernetes.io/kube-apiserver-client';
const legacy = 'kubernetes.io/legacy-unknown';
const own = 'k8s.example.com/users';
const nodes = 'kubernetes.io/kube-apiserver-client-kubelet';

function fileOf(profiles: string, more = ''): string {
  return `version: 1
clusters:
  demo:
    cas: {ca: {subject: {commonName: CA}}}
    profiles:
      ${profiles.replaceAll('\n', '\n      ')}
${more}`;
}

function told(text: string): { problems: string[]; warnings: string[] } {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  const said = (list: readonly { path: string; message: string }[]): string[] =>
    list.map(({ path, message }) => `${path.replace('clusters.demo.', '')}: ${message}`);
  return parsed.ok
    ? { problems: [], warnings: said(parsed.value.warnings) }
    : { problems: said(parsed.problem), warnings: [] };
}

function profileOf(signer: string, profile: string, more = ''): Profile {
  const parsed = parseConfiguration(fileOf(`${signer}: ${profile}`, more), 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  const found = parsed.value.configuration.clusters.get('demo')?.profiles.get(signer);
  if (found === undefined) throw new Error(`no profile ${signer}`);
  return found;
}

function judge(profile: Profile, spec: RequestSpec, usages: readonly string[] = ['client auth']): readonly Violation[] {
  const decoded = decodeRequest(makeRequest(spec).bytes);
  if (!decoded.ok) return decoded.problem;
  return checkProfile(profile, object({ usages, username: 'mallory', groups: ['dev'] }), decoded.value);
}

const codes = (violations: readonly Violation[]): string[] => violations.map(({ code }) => code);

/** As wide as each of them can be. */
const wide: Readonly<Record<string, string>> = {
  [users]: '{}',
  [legacy]: '{}',
  [own]: "{usages: {allowed: [client auth]}, subject: {commonNames: ['*'], organizations: ['*']}}",
};
function withSubject(signer: string, subject: string): string {
  return signer === own
    ? `{usages: {allowed: [client auth]}, subject: {commonNames: ['*'], organizations: ['*'], ${subject}}}`
    : `{subject: {${subject}}}`;
}

/** The names that installers of Kubernetes give to a control plane. No requester should get one. */
const controlPlane = [
  'kubeadm:cluster-admins',
  'kubernetes-admin',
  'kubernetes-super-admin',
  'front-proxy-client',
  'aggregator',
  'kube-aggregator',
  'kube-apiserver',
  'kube-apiserver-kubelet-client',
  'kube-apiserver-etcd-client',
  'apiserver-kubelet-client',
  'kube-apiserver-proxy-client',
  'kubelet-api',
  'kubernetes',
  'kubernetes-master',
  'kubernetes-konnectivity',
  'kube-etcd',
  'kube-etcd-peer',
  'kube-etcd-healthcheck-client',
  'etcd',
  'etcd-client',
  'etcd-peer',
  'etcd-server',
  'k3s-cloud-controller-manager',
  'rke2-cloud-controller-manager',
];

describe.each([users, legacy, own])('finding 1: names of the control plane and %s', (signer) => {
  test.each(controlPlane)('%s is given neither as common name nor as organization', (name) => {
    const profile = profileOf(signer, wide[signer]!);
    for (const subject of [{ CN: name }, { O: name, CN: 'alice' }, { O: ['dev', name], CN: 'alice' }])
      expect(judge(profile, { subject })).toEqual([
        {
          code: 'NameReserved',
          message: `${subject.CN === name ? 'common name' : 'organization'} "${name}" is reserved; this signer does not issue it`,
        },
      ]);
  });

  test.each(controlPlane)('%s is given where the profile lists it, and no other', (name) => {
    const profile = profileOf(signer, withSubject(signer, `allowReserved: ['${name}']`));
    expect(judge(profile, { subject: { O: name, CN: name } })).toEqual([]);
    const other = name === 'etcd' ? 'kube-etcd' : 'etcd';
    expect(codes(judge(profile, { subject: { CN: other } }))).toEqual(['NameReserved']);
    expect(codes(judge(profile, { subject: { CN: name.toUpperCase() } }))).toEqual(['NameReserved']);
  });

  test.each([
    ['capitals', 'Front-Proxy-Client'],
    ['capitals in another script', 'KUBEADM:cluster-admins'],
    ['full-width letters', 'ｋｕｂｅｒｎｅｔｅｓ-ａｄｍｉｎ'],
    ['a ligature', 'kubeadm:ﬁrst'],
    ['more than one blank', 'Platform   Admins'],
    ['a reserved name in capitals', 'PLATFORM ADMINS'],
    ['a reserved pattern', 'break-glass-7'],
  ])('%s: names are compared as RFC 5280 §7.1 compares them', (_, name) => {
    const profile = profileOf(signer, wide[signer]!, "    reservedNames: ['Platform Admins', 'break-glass-*']");
    expect(codes(judge(profile, { subject: { O: name, CN: 'alice' } }))).toEqual(['NameReserved']);
    expect(codes(judge(profile, { subject: { CN: name } }))).toEqual(['NameReserved']);
  });

  test.each(['alice', 'kubernauts', 'dev', 'systematic', 'apiservers', 'etc', 'web-etcd', 'Größe', 'a b'])(
    '%s is no name of the control plane',
    (name) => {
      expect(judge(profileOf(signer, wide[signer]!), { subject: { O: name, CN: name } })).toEqual([]);
    },
  );

  test('the operator’s own names are listed exactly, too', () => {
    const more = "    reservedNames: ['break-glass-*']";
    const profile = profileOf(signer, withSubject(signer, 'allowReserved: [break-glass-1]'), more);
    expect(judge(profile, { subject: { CN: 'break-glass-1' } })).toEqual([]);
    expect(codes(judge(profile, { subject: { CN: 'break-glass-2' } }))).toEqual(['NameReserved']);
    expect(codes(judge(profile, { subject: { CN: 'break-glass-10' } }))).toEqual(['NameReserved']);
  });
});

test('finding 1: a kubelet’s own name may match a pattern of the operator', () => {
  const profile = profileOf(nodes, '{}', "    reservedNames: ['*master*']");
  const subject = { O: 'system:nodes', CN: 'system:node:master-1' };
  expect(judge(profile, { subject }, ['digital signature', 'client auth'])).toEqual([]);
});

describe.each([users, legacy])('finding 1: subject.commonNames and subject.organizations limit %s', (signer) => {
  test.each([
    ["commonNames: ['team-*']", { CN: 'team-1' }, []],
    ["commonNames: ['team-*']", { CN: 'alice' }, ['common name "alice" is not permitted']],
    ["commonNames: ['team-*']", { O: 'anything', CN: 'team-1' }, []],
    ["commonNames: ['team-*']", { O: 'dev' }, []],
    ['organizations: [dev]', { O: 'dev', CN: 'alice' }, []],
    ['organizations: [dev]', { CN: 'alice' }, []],
    ['organizations: [dev]', { O: ['dev', 'ops'], CN: 'alice' }, ['organization "ops" is not permitted']],
    ['organizations: []', { O: 'dev', CN: 'alice' }, ['organization "dev" is not permitted']],
    ['organizations: []', { CN: 'alice' }, []],
    ["commonNames: ['*']", { CN: 'etcd' }, ['common name "etcd" is reserved; this signer does not issue it']],
    ['commonNames: [], allowReserved: [etcd]', { CN: 'etcd' }, []],
    ['commonNames: [], allowReserved: [etcd]', { CN: 'alice' }, ['common name "alice" is not permitted']],
  ])('%s: %j', (subject, asked: RequestSpec['subject'], messages) => {
    const found = judge(profileOf(signer, `{subject: {${subject}}}`), asked === undefined ? {} : { subject: asked });
    expect(found.map(({ message }) => message)).toEqual(messages);
    for (const { code, message } of found)
      expect(code).toBe(message.includes('reserved') ? 'NameReserved' : 'SubjectNotPermitted');
  });

  test.each([
    [
      '{subject: {commonNames: []}}',
      'commonNames',
      'permits no common name: list common names, or exact ones under allowReserved',
    ],
    [
      "{subject: {commonNames: [a, 'kubeadm:*']}}",
      'commonNames[1]',
      'names reserved names only, which patterns never permit; list exact ones under allowReserved',
    ],
    [
      '{subject: {organizations: [kubernetes-admin]}}',
      'organizations[0]',
      'names reserved names only, which patterns never permit; list exact ones under allowReserved',
    ],
    [
      "{subject: {commonNames: [a, 'team ']}}",
      'commonNames[1]',
      'has a blank at an end of it, and requests with such a name are refused',
    ],
    [
      '{subject: {organizations: ["dev\\u200b"]}}',
      'organizations[0]',
      'has a hidden character in it, and requests with such a name are refused',
    ],
    [
      '{subject: {allowReserved: [alice]}}',
      'allowReserved[0]',
      'is not reserved; list it under commonNames or organizations',
    ],
    [
      "{subject: {allowReserved: ['etcd-*']}}",
      'allowReserved[0]',
      'must be an exact name; patterns never permit reserved names',
    ],
    [
      '{subject: {commonNameRequired: true}}',
      'commonNameRequired',
      `is fixed by Kubernetes for ${signer} and cannot be set`,
    ],
  ])('%s is an error', (profile, at, message) => {
    expect(told(fileOf(`${signer}: ${profile}`)).problems).toEqual([`profiles["${signer}"].subject.${at}: ${message}`]);
  });
});

describe('finding 1: the relay approves for users only where names are limited', () => {
  const approve = (signer: string, profile: string): string[] =>
    told(fileOf(`${users}: {requester: {users: [jane]}}\n${signer}: ${profile}`, `    approval: {${signer}: approve}`))
      .problems;
  const message = (...keys: readonly string[]): string =>
    `would approve any name that is not reserved: limit ${keys.map((key) => `subject.${key}`).join(' and ')}`;
  const requester = 'requester: {groups: [dev]}';
  const usages = 'usages: {allowed: [client auth]}';

  // It gives any subjectAltName with any usage: a certificate for the API server's own name, to any permitted requester.
  test.each(['', 'subject: {commonNames: [a]}', 'subject: {commonNames: [a], organizations: [b]}'])(
    'legacy-unknown never, with %j',
    (subject) => {
      expect(approve(legacy, `{${requester}, ${subject}}`)).toEqual([
        expect.stringMatching(/^approval\["kubernetes.io\/legacy-unknown"\]: would approve any subjectAltName /),
      ]);
    },
  );

  test.each([
    ['', ['commonNames', 'organizations']],
    ['subject: {commonNames: [a]}', ['organizations']],
    ['subject: {organizations: [a]}', ['commonNames']],
    ["subject: {commonNames: ['*'], organizations: ['team-*', '**']}", ['commonNames', 'organizations']],
    ["subject: {commonNames: ['a*', '*'], organizations: []}", ['commonNames']],
  ])('kube-apiserver-client with %j', (subject, keys) => {
    const file = fileOf(`${users}: {${requester}, ${subject}}`, `    approval: {${users}: approve}`);
    expect(told(file).problems).toEqual([`approval["${users}"]: ${message(...keys)}`]);
  });

  test('kube-apiserver-client', () => {
    const unlimited = fileOf(`${users}: {${requester}}`, `    approval: {${users}: approve}`);
    expect(told(unlimited).problems).toEqual([`approval["${users}"]: ${message('commonNames', 'organizations')}`]);
    const limited = fileOf(
      `${users}: {${requester}, subject: {commonNames: ['team-*'], organizations: [dev]}}`,
      `    approval: {${users}: approve}`,
    );
    expect(told(limited)).toEqual({ problems: [], warnings: [] });
  });

  test('a signer of one’s own, where its certificates are logins', () => {
    expect(approve(own, `{${requester}, ${usages}, subject: {commonNames: ['*'], organizations: [dev]}}`)).toEqual([
      `approval["${own}"]: ${message('commonNames')}`,
    ]);
    expect(approve(own, `{${requester}, ${usages}, subject: {commonNames: [a]}}`)).toEqual([]);
    const servers = `{${requester}, usages: {allowed: [server auth]}, subject: {commonNames: ['*']}}`;
    expect(approve(own, servers)).toEqual([]);
  });

  test('and says nothing where it does not approve', () => {
    expect(told(fileOf(`${users}: {}`)).problems).toEqual([]);
  });
});

describe('finding 9: the relay approves for users only where requesters are limited', () => {
  const limited = "subject: {commonNames: ['team-*'], organizations: []}";
  const approve = (signer: string, profile: string): string[] =>
    told(fileOf(`${signer}: ${profile}`, `    approval: {${signer}: approve}`)).problems;
  const message = (who: string): string => `would approve what ${who} asks for: name who may under requester`;
  const anyUser = 'any user';

  test.each<readonly [string, string]>([
    ['{}', anyUser],
    ["{users: ['*']}", anyUser],
    ["{users: ['***']}", anyUser],
    ["{groups: ['*']}", anyUser],
    ["{groups: ['system:*']}", anyUser],
    ["{groups: ['*:*']}", anyUser],
    ["{groups: ['s*']}", anyUser],
    ["{groups: ['system:auth*']}", anyUser],
    ['{groups: [system:authenticated]}', anyUser],
    ['{groups: [system:unauthenticated]}', 'an unauthenticated user'],
    ['{users: [system:anonymous]}', 'an unauthenticated user'],
    ["{users: ['system:*']}", 'an unauthenticated user'],
    ["{users: ['*:*']}", 'an unauthenticated user'],
    ["{users: ['*@*']}", anyUser],
    ["{users: [jane, 'system:serviceaccount:*']}", 'any service account'],
    ['{groups: [system:serviceaccounts]}', 'any service account'],
    ["{groups: ['system:serviceaccounts:*']}", 'any service account'],
    ["{users: ['system:serviceaccount:*:default']}", 'any service account'],
    ["{users: ['system:node:*']}", 'any node'],
    ['{groups: [system:nodes]}', 'any node'],
    ["{users: ['system:bootstrap:*']}", 'any bootstrap token'],
    ['{groups: [system:bootstrappers]}', 'any bootstrap token'],
    ["{groups: ['system:bootstrappers:*']}", 'any bootstrap token'],
  ])('%s is an error', (requester, who) => {
    for (const [signer, profile] of [
      [users, `{requester: ${requester}, ${limited}}`],
      [own, `{requester: ${requester}, usages: {allowed: [server auth]}, sans: {dns: ['*.example.com']}}`],
    ] as const)
      expect(approve(signer, profile)).toEqual([`approval["${signer}"]: ${message(who)}`]);
  });

  test.each([
    '{users: [jane]}',
    '{groups: [platform-team]}',
    "{users: ['*@example.com']}",
    "{users: ['oidc:*@example.com']}",
    "{groups: ['oidc:team-*']}",
    "{users: ['system:serviceaccount:*:web-certificates']}",
    '{groups: [system:serviceaccounts:ci]}',
    '{users: [system:node:n1]}',
    '{users: [system:bootstrap:abcdef]}',
    '{groups: [system:masters]}',
  ])('%s limits the requesters', (requester) => {
    expect(approve(users, `{requester: ${requester}, ${limited}}`)).toEqual([]);
  });

  test('a kubelet signer is asked by nodes and tokens', () => {
    expect(approve(nodes, "{requester: {groups: ['system:bootstrappers:*', system:nodes]}}")).toEqual([]);
  });
});
