/**
 * examples/gke-signers.yaml permits what the approvers of gcp-controller-manager approve for the signers of GKE, and refuses each neighbour
 * that they deny. The first requests of each signer are those of gcp-controller-manager's own tests.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import type { RequestSpec } from '../../harness/x509/requests.ts';
import { run } from '../cli/run.ts';

const file = resolve(import.meta.dirname, '../../../examples/gke-signers.yaml');

interface Asked {
  readonly username: string;
  readonly usages: readonly string[];
  readonly names: RequestSpec;
}
/** A neighbour: what differs from the first request, and every reason against it. */
type Neighbour = readonly [what: string, change: Partial<Asked>, ...reasons: readonly string[]];

const istiod = 'system:serviceaccount:istio-system:istiod';
const oidc = 'system:serviceaccount:anthos-identity-service:gke-oidc-operator';
const serverUsages = ['key encipherment', 'digital signature', 'server auth'];
const dns = (...names: readonly string[]): Partial<Asked> => ({ names: { sans: { dns: names } } });
const withSan = (more: NonNullable<RequestSpec['sans']>): Partial<Asked> => ({
  names: { sans: { dns: ['istiod.istio-system.svc'], ...more } },
});
const named = (CN: string, more: RequestSpec = {}): Partial<Asked> => ({ names: { subject: { CN }, ...more } });
const istiodNames = { sans: { dns: ['istiod.istio-system.svc'] } };

const signers: Readonly<
  Record<string, { first: Asked; permitted: Readonly<Record<string, Partial<Asked>>>; refused: readonly Neighbour[] }>
> = {
  'pki.gke.io/istiod': {
    first: {
      username: istiod,
      usages: serverUsages,
      names: {
        sans: {
          dns: [
            'istiod.istio-system.svc',
            'istiod-remote.istio-system.svc',
            'istiod-123.istio-system.svc',
            'istio-pilot.istio-system.svc',
          ],
        },
      },
    },
    permitted: {
      'a revision': { username: `${istiod}-123`, ...dns('istiod-123.istio-system.svc') },
      'its user name': named(istiod, istiodNames),
    },
    refused: [
      [
        'another service account of the namespace',
        { username: 'system:serviceaccount:istio-system:ingress' },
        'RequesterNotAllowed',
      ],
      ['istiod of another namespace', { username: 'system:serviceaccount:default:istiod' }, 'RequesterNotAllowed'],
      ['a name that begins like it', { username: `${istiod}x` }, 'RequesterNotAllowed'],
      ['one usage more', { usages: [...serverUsages, 'client auth'] }, 'UsageNotPermitted'],
      ['one usage less', { usages: ['digital signature', 'server auth'] }, 'UsageNotPermitted'],
      ['a name of another service', dns('istiod.istio-system.svc', 'other.istio-system.svc'), 'SanNotPermitted'],
      ['another namespace', dns('istiod.default.svc'), 'SanNotPermitted'],
      ['the name with its domain', dns('istiod.istio-system.svc.cluster.local'), 'SanNotPermitted'],
      ['a wildcard', dns('*.istio-system.svc'), 'SanNotPermitted'],
      ['no name', { names: { subject: { CN: istiod } } }, 'SanNotPermitted'],
      ['a URI', withSan({ uri: ['spiffe://cluster.local/ns/istio-system/sa/istiod'] }), 'SanNotPermitted'],
      ['a mail address', withSan({ email: ['istiod@example.com'] }), 'SanNotPermitted'],
      ['an address', withSan({ ip: ['10.0.0.1'] }), 'SanNotPermitted'],
      ['the user name of a revision that is not listed', named(`${istiod}-123`, istiodNames), 'NameReserved'],
      ['a node', named('system:node:n1', istiodNames), 'NameReserved'],
      ['another common name', named('istiod', istiodNames), 'SubjectNotPermitted'],
    ],
  },
  'pki.gke.io/gke-oidc': {
    first: {
      username: oidc,
      usages: ['client auth', 'server auth'],
      names: { sans: { dns: ['gke-oidc-envoy.anthos-identity-service.svc'] } },
    },
    permitted: { 'the other namespace': dns('gke-oidc-envoy.kube-system.svc') },
    refused: [
      ['another service account', { username: 'system:serviceaccount:default:gke-oidc' }, 'RequesterNotAllowed'],
      ['one usage more', { usages: ['client auth', 'server auth', 'digital signature'] }, 'UsageNotPermitted'],
      ['one usage less', { usages: ['server auth'] }, 'UsageNotPermitted'],
      [
        'a name of another service',
        dns('gke-oidc-envoy.anthos-identity-service.svc', 'other.anthos-identity-service.svc'),
        'SanNotPermitted',
      ],
      ['another namespace', dns('gke-oidc-envoy.default.svc'), 'SanNotPermitted'],
      [
        'a URI',
        { names: { sans: { dns: ['gke-oidc-envoy.kube-system.svc'], uri: ['spiffe://a/b'] } } },
        'SanNotPermitted',
      ],
      // gcp-controller-manager approves the following three.
      ['a user', named('alice@example.com', { sans: { dns: ['gke-oidc.kube-system.svc'] } }), 'SubjectNotPermitted'],
      ['an address', { names: { sans: { dns: ['gke-oidc.kube-system.svc'], ip: ['10.0.0.1'] } } }, 'SanNotPermitted'],
      ['no name', { names: { sans: {} } }, 'SanNotPermitted', 'SubjectNotPermitted'],
    ],
  },
  'gke.io/kubelet-readonly-client': {
    first: {
      username: 'system:serviceaccount:monitoring:kubelet-reader',
      usages: serverUsages.with(2, 'client auth'),
      names: { subject: { CN: 'kubelet-ro-client:reader' } },
    },
    permitted: { 'fewer usages': { usages: ['digital signature', 'client auth'] } },
    refused: [
      ['another service account', { username: 'system:serviceaccount:default:reader' }, 'RequesterNotAllowed'],
      ['one usage more', { usages: ['client auth', 'server auth'] }, 'UsageNotPermitted'],
      ['another common name', named('kubelet-rw-client:reader'), 'SubjectNotPermitted'],
      ['no common name', { names: { subject: {} } }, 'SubjectNotPermitted'],
      // gcp-controller-manager approves the following three.
      ['no usage of a client', { usages: ['digital signature'] }, 'UsageNotPermitted'],
      ['a group', { names: { subject: { CN: 'kubelet-ro-client:reader', O: 'system:masters' } } }, 'NameReserved'],
      [
        'a DNS name',
        { names: { subject: { CN: 'kubelet-ro-client:reader' }, sans: { dns: ['a.example.com'] } } },
        'SanNotPermitted',
      ],
    ],
  },
};

test('the file is valid, without a warning, and can be deployed', async () => {
  expect(await run(['config', 'validate', file])).toMatchObject({ code: 0, err: '' });
  const parsed = parseConfiguration(readFileSync(file, 'utf8'), file, { toDeploy: true });
  expect(parsed.ok ? [] : parsed.problem).toEqual([]);
});

test('its lists of requesters are narrow enough for an approving relay', async () => {
  const approving = Object.keys(signers).map((name) => `      ${name}: approve\n`);
  const changed = readFileSync(file, 'utf8').replace(
    '    frontDoor:',
    `    approval:\n${approving.join('')}    frontDoor:`,
  );
  const { code, out } = await run(['config', 'validate', 'c.yaml'], { files: { 'c.yaml': changed } });
  expect([code, out.match(/approve$/gm)?.length]).toEqual([0, 3]);
});

test.each(Object.entries(signers))('%s', async (signerName, { first, permitted, refused }) => {
  const { path, remove } = temporaryFolder('gke-cases');
  onTestFinished(remove);
  const write = (name: string, change: Partial<Asked>, expected: object): void => {
    const { username, usages, names } = { ...first, ...change };
    const groups = ['system:serviceaccounts', 'system:authenticated'];
    const request = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      spec: { request: makeRequest({ subject: {}, ...names }).pem, signerName, usages, username, groups },
    };
    writeFileSync(join(path, `${name}.json`), JSON.stringify({ request, expect: expected }));
  };
  write('first', {}, { decision: 'permit' });
  for (const [name, change] of Object.entries(permitted)) write(name, change, { decision: 'permit' });
  for (const [name, change, ...reasons] of refused) write(name, change, { decision: 'refuse', reasons });
  const { out, code } = await run(['config', 'test', path, '--config', file, '-o', 'json']);
  const { results, cases } = JSON.parse(out) as { cases: number; results: { passed: boolean }[] };
  expect(results.filter(({ passed }) => !passed)).toEqual([]);
  expect([code, cases]).toEqual([0, 1 + Object.keys(permitted).length + refused.length]);
});
