/** attestation.tpm, the PCR policy of a profile, and what `config validate` says about challenges. */
import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { bundleAttestation, readBundledCluster } from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { toPem } from '../../../../../core/encoding/pem.ts';
import { caCertificatePem, leafCertificatePem } from '../../../../corpus/attestation/pem.ts';

const signer = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const hash = 'ab'.repeat(32);

interface Given {
  readonly tpm?: object;
  readonly attestation?: object;
  readonly signerName?: string;
  readonly approval?: object;
}

function parse({ tpm = {}, attestation, signerName = signer, approval = { [signer]: 'approve' } }: Given) {
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles: { [signerName]: attestation === undefined ? {} : { attestation } },
    approval,
    attestation: { audience: 'demo', tpm },
  };
  return parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
}

function problems(given: Given): readonly string[] {
  const result = parse(given);
  return result.ok
    ? []
    : result.problem.map(({ path, message }) => `${path.slice('clusters.demo.'.length)} ${message}`);
}

function warnings(given: Given): readonly string[] {
  const result = parse(given);
  return result.ok
    ? result.value.warnings.map(({ path, message }) => `${path.slice('clusters.demo.'.length)} ${message}`)
    : ['invalid'];
}

/** A trailing byte, which OpenSSL ignores. */
const longer = toPem('CERTIFICATE', Buffer.concat([new X509Certificate(caCertificatePem).raw, Buffer.of(0)]));

describe('which endorsement keys are trusted', () => {
  test('those of listed machines, if nothing else is said', () => {
    const result = parse({});
    if (!result.ok) throw new Error('refused');
    expect(result.value.configuration.clusters.get('demo')?.attestation?.tpm).toEqual({
      machines: 'listed',
      roots: [],
      intermediates: [],
      endorsementKeys: [],
      nodeNames: [],
    });
    expect(warnings({})).toEqual([]);
  });

  test('any machine needs another trust, and a rule for its name', () => {
    expect(problems({ tpm: { machines: 'any' } })).toEqual([
      'attestation.tpm trusts no endorsement key: name roots or endorsementKeys, or leave machines: listed',
      'attestation.tpm.nodeName is required with machines: any. For example [pattern:edge-*]',
    ]);
    expect(problems({ tpm: { machines: 'any', endorsementKeys: [hash], nodeName: ['pattern:edge-*'] } })).toEqual([]);
  });

  test('a root of a manufacturer without a list is a warning: it sells to others too', () => {
    expect(warnings({ tpm: { machines: 'any', roots: [caCertificatePem], nodeName: ['pattern:edge-*'] } })).toEqual([
      'attestation.tpm.machines any TPM with a certificate under these roots may join, also one that its manufacturer sold to another customer',
    ]);
  });

  test.for([
    [{ roots: ['no PEM'] }, /^attestation\.tpm\.roots\[0\] is not one PEM certificate/],
    [{ roots: [leafCertificatePem] }, /^attestation\.tpm\.roots\[0\] is not the certificate of a CA$/],
    [{ roots: [longer] }, /^attestation\.tpm\.roots\[0\] is not an X\.509 v3 certificate in DER$/],
    [{ roots: [`${caCertificatePem}${caCertificatePem}`] }, /^attestation\.tpm\.roots\[0\] is not one PEM certificate/],
    [{ intermediates: [caCertificatePem] }, /^attestation\.tpm\.intermediates lead to no root: name roots$/],
    [{ endorsementKeys: [hash.toUpperCase()] }, /must be a SHA-256 digest in lower-case hex$/],
    [{ nodeName: ['edge-1'] }, /must be pattern:<name with \*>$/],
    [{ nodeName: ['pattern:Edge_*'] }, /is not the name of a node or a pattern of one$/],
  ] as const)('refuses %j', ([tpm, expected]) => {
    expect(problems({ tpm })).toEqual([expect.stringMatching(expected)]);
  });
});

describe('the PCR policy of a profile', () => {
  const pcrs = { values: { 7: [hash] } };

  test('reaches the attest function as it is written', () => {
    const result = parse({ attestation: { pcrs } });
    const cluster = result.ok ? result.value.configuration.clusters.get('demo') : undefined;
    if (cluster === undefined) throw new Error('refused');
    const read = readBundledCluster(bundleAttestation(cluster));
    expect(read.profiles.get(signer)?.attestation?.pcrs).toEqual({ bank: 'sha256', values: { 7: [hash] } });
    expect(read.attestation).toEqual(cluster.attestation);
  });

  test.for([
    [{ values: { 24: [hash] } }, 'must be the index of a PCR'],
    [{ values: { 7: [] } }, 'must hold at least one value'],
    [{ values: { 7: ['00'] } }, 'must be a SHA-256 digest in lower-case hex'],
    [{ bank: 'sha1', values: { 7: [hash] } }, 'sha256'],
  ] as const)('refuses %j', ([wrong, message]) => {
    expect(problems({ attestation: { pcrs: wrong } }).join()).toContain(message);
  });

  const event = (byte: number) => `${Buffer.alloc(32, byte).toString('hex')} EV_SEPARATOR`;
  // SHA-256 of the first value of the PCR and the digest of the event.
  const afterOne = '5c85955f709283ecce2b74f1b1552918819f390911816e7bb466805a38ab87f3';
  const fromLocality3 = 'c4b53db2451179ae484ec21b86db445789df9d50929e807e35edcf440c9277fe';

  test('recorded boots lead to a permitted value of their PCR', () => {
    const events = { 0: [[event(1)]], 7: [[event(1)]] };
    const values = { 0: [hash, fromLocality3], 7: [hash, afterOne] };
    expect(problems({ attestation: { pcrs: { values, events } } })).toEqual([]);
    const wrong = { 0: [[event(1)], [event(2)]], 4: [[event(1)]], 7: [[event(1), event(1)]] };
    const at = (place: string, pcr: number) =>
      `profiles["${signer}"].attestation.pcrs.events${place} leads to none of the values that PCR ${pcr} may have`;
    expect(problems({ attestation: { pcrs: { values, events: wrong } } })).toEqual([
      at('.0[1]', 0),
      at('.4[0]', 4),
      at('.7[0]', 7),
    ]);
    // Only the first PCR may begin with the number of a locality.
    const other = { values: { 7: [fromLocality3] }, events: { 7: [[event(1)]] } };
    expect(problems({ attestation: { pcrs: other } })).toEqual([at('.7[0]', 7)]);
  });

  test.for([
    [[[]], 'must hold at least one event'],
    [[[hash]], 'must be a SHA-256 digest in lower-case hex, a blank, and a name'],
    [[[`${hash} `]], 'and a name of at most 64'],
    [[[`${hash} ${'x'.repeat(65)}`]], 'and a name of at most 64'],
    [[[`${hash} two\nlines`]], 'and a name of at most 64'],
  ] as const)('refuses the recorded boots %j', ([boots, message]) => {
    const pcrs = { values: { 7: [hash] }, events: { 7: boots } };
    expect(problems({ attestation: { pcrs } }).join()).toContain(message);
  });

  test('a profile that takes another proof too would take it without the PCRs', () => {
    const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
    const attestation = { providers: ['tpm', 'aws'], pcrs };
    expect(problems({ signerName, attestation, approval: {} })).toContain(
      `profiles["${signerName}"].attestation.pcrs is for providers with a TPM only: the evidence of another one would be taken without`,
    );
  });
});

test('a cluster whose relay does not approve cannot pass a challenge on', () => {
  expect(warnings({ approval: {} })).toEqual([
    `approval["${signer}"] is manual: only the relay, where it approves, passes the challenge of a TPM on to the node; a client of the webhook alone gets AttestationChallenge and cannot answer`,
  ]);
});
