/** attestation.x509. */
import { describe, expect, test } from 'vitest';
import { bundleAttestation, readBundledCluster } from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { caCertificatePem, leafCertificatePem } from '../../../../corpus/attestation/pem.ts';
import { keyOf } from '../../../../harness/x509/certificate-writer.ts';
import * as world from '../../../../corpus/attestation/x509/machine.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-x509';
const rule = { root: 'prod', uri: 'spiffe://prod.example/node/{node}', nodeName: ['{node}'] };
const roots = { prod: [caCertificatePem] };

function parse(x509: object | undefined) {
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles: { [signer]: {} },
    attestation: { audience: 'demo', ...(x509 === undefined ? {} : { x509 }) },
  };
  return parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
}

function problems(x509: object | undefined): readonly string[] {
  const result = parse(x509);
  return result.ok
    ? []
    : result.problem.map(({ path, message }) => `${path.slice('clusters.demo.attestation.'.length)} ${message}`);
}

const ruleProblems = (change: object) => problems({ roots, rules: [{ ...rule, ...change }] });

test('what is left out has safe defaults, and all of it reaches the attest function', () => {
  const byDns = { ...rule, uri: undefined, dns: '{node}.prod.example', nodeName: ['pattern:worker-*'] };
  const result = parse({ roots, rules: [rule, { ...byDns, addresses: true, dnsNames: true, extKeyUsage: '1.2.3' }] });
  const cluster = result.ok ? result.value.configuration.clusters.get('demo') : undefined;
  if (cluster === undefined) throw new Error('refused');
  expect(cluster.attestation?.x509).toEqual({
    roots: [{ name: 'prod', certificates: [caCertificatePem] }],
    intermediates: [],
    rules: [
      {
        root: 'prod',
        kind: 'uri',
        pattern: 'spiffe://prod.example/node/{node}',
        nodeName: [{ kind: 'template', template: '{node}' }],
        addresses: false,
        dnsNames: false,
        extKeyUsage: '1.3.6.1.5.5.7.3.2',
      },
      {
        root: 'prod',
        kind: 'dns',
        pattern: '{node}.prod.example',
        nodeName: [{ kind: 'pattern', pattern: 'worker-*' }],
        addresses: true,
        dnsNames: true,
        extKeyUsage: '1.2.3',
      },
    ],
  });
  expect(readBundledCluster(bundleAttestation(cluster)).attestation).toEqual(cluster.attestation);
});

test('extKeyUsage: unchecked has no purpose', () => {
  const result = parse({ roots, rules: [{ ...rule, extKeyUsage: 'unchecked' }] });
  const cluster = result.ok ? result.value.configuration.clusters.get('demo') : undefined;
  expect(cluster?.attestation?.x509?.rules[0]).not.toHaveProperty('extKeyUsage');
});

describe('refuses', () => {
  test('a profile without it', () => {
    expect(problems(undefined)).toEqual(['x509 is required: a profile takes evidence of x509']);
  });

  test('neither roots nor rules', () => {
    expect(problems({})).toEqual([
      'x509.roots is required and must name a root',
      'x509.rules is required: which certificates are machines?',
    ]);
  });

  test.for([
    [{ prod: [] }, 'x509.roots.prod must hold at least one certificate'],
    [{ prod: ['no PEM'] }, 'x509.roots.prod[0] is not one PEM certificate'],
    [{ prod: [leafCertificatePem] }, 'x509.roots.prod[0] is not the certificate of a CA'],
    [{ prod: [caCertificatePem], 'a/b': [world.pem(world.otherRoot)] }, 'must be a name of lower-case letters'],
    [{ prod: [caCertificatePem], Prod: [world.pem(world.otherRoot)] }, 'must be a name of lower-case letters'],
    [{ prod: [caCertificatePem], other: [caCertificatePem] }, 'x509.roots.other[0] has the key of root prod'],
  ] as const)('roots %j', ([wrong, expected]) => {
    expect(problems({ roots: wrong, rules: [rule] }).join('\n')).toContain(expected);
  });

  test('the key of one root in another certificate under another name', () => {
    const twice = {
      prod: [world.pem(world.certificates.root)],
      other: [world.pem(world.root({ notAfter: world.now }))],
    };
    expect(problems({ roots: twice, rules: [rule] })).toEqual(['x509.roots.other[0] has the key of root prod']);
  });

  test.for([
    ['is not an X.509 v3 certificate in DER', world.root({ version: 0, extensions: [] })],
    [
      'has a key that is not accepted',
      world.root({ key: keyOf('root', 'RSA-1024'), signer: keyOf('root', 'RSA-1024') }),
    ],
  ] as const)('a root that %s', ([problem, der]) => {
    expect(problems({ roots: { prod: [world.pem(der)] }, rules: [rule] }).join()).toContain(`roots.prod[0] ${problem}`);
  });

  test('an intermediate that is signed with SHA-1; a root may be', () => {
    const der = world.pem(world.root({ algorithm: 'ECDSA SHA-1' }));
    expect(problems({ roots: { prod: [der] }, intermediates: [der], rules: [rule] })).toEqual([
      expect.stringContaining('x509.intermediates[0] is signed with an algorithm that is not accepted'),
    ]);
  });

  test('an intermediate that is no CA', () => {
    expect(problems({ roots, intermediates: [leafCertificatePem], rules: [rule] })).toEqual([
      'x509.intermediates[0] is not the certificate of a CA',
    ]);
  });

  test('a rule that another one covers', () => {
    expect(problems({ roots, rules: [rule, { ...rule, nodeName: ['pattern:x-*'] }] })).toEqual([
      'x509.rules[1] matches the certificates of rule 1: no certificate could join',
    ]);
  });

  test.for([
    [{ root: 'other' }, '.root is not a key of roots'],
    [{ root: 'constructor' }, '.root is not a key of roots'],
    [{ cn: '{node}' }, ' needs exactly one of uri, cn and dns: the name that identifies the machine'],
    [{ uri: undefined }, ' needs exactly one of uri, cn and dns: the name that identifies the machine'],
    [{ uri: 'spiffe://prod.example/*' }, '.uri must be printable ASCII without blanks, with parts such as {node}'],
    [{ uri: undefined, cn: 'Device {node}' }, '.cn must be printable ASCII without blanks'],
    [{ uri: 'spiffe://prod.example/{node}{x}' }, '.uri has two parts that no separator divides'],
    [{ uri: '{node}/{node}' }, '.uri has the part {node} twice'],
    [{ nodeName: [] }, '.nodeName is required: what may the machine be called? For example ["{node}"]'],
    [{ nodeName: ['{host}'] }, '.nodeName[0] uses the part {host}, which does not exist here'],
    [{ nodeName: ['{node'] }, '.nodeName[0] is not the name of a node'],
    [{ nodeName: ['{node}_x'] }, '.nodeName[0] is not the name of a node'],
    [{ nodeName: ['worker-*'] }, '.nodeName[0] is not the name of a node'],
    [{ nodeName: ['pattern:Worker_*'] }, '.nodeName[0] is not the name of a node or a pattern of one'],
    [{ extKeyUsage: 'signing' }, '.extKeyUsage is no extended key usage: for example client auth, or an OID'],
    [{ extKeyUsage: 'any' }, '.extKeyUsage is no extended key usage'],
    [{ extKeyUsage: '3.1' }, '.extKeyUsage is no extended key usage'],
    [{ serial: '{node}' }, 'serial'],
  ] as const)('a rule with %j', ([change, expected]) => {
    expect(ruleProblems(change).join('\n')).toContain(expected);
  });
});
