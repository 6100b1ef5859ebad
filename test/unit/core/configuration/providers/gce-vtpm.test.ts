/** attestation.gce-vtpm, requestBlocks, and who may ask where provider gce-vtpm counts. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  bundleAttestation,
  bundleCluster,
  readBundledCluster,
} from '../../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { caCertificatePem, leafCertificatePem } from '../../../../corpus/attestation/pem.ts';
import { signingKey } from '../../../../corpus/attestation/gce-vtpm/real-requests.ts';

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const provider =
  '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign';
const vm = { project: '2', zone: 'us-central1-c', id: '7', name: 'vm', signingKey };
const projects = { '2': 'p0' };
const federated = { projects, federation: { provider }, labels: { role: 'node' } };

interface Given {
  readonly vtpm?: object | undefined;
  readonly profiles?: object;
}

const attested = { attestation: { providers: ['gce-vtpm'] } };

function parse({ vtpm, profiles = { [client]: attested } }: Given) {
  const cluster = {
    cas: { ca: { subject: { commonName: 'CA' } } },
    profiles,
    ...(vtpm === undefined ? {} : { attestation: { 'gce-vtpm': vtpm } }),
  };
  return parseConfiguration(JSON.stringify({ version: 1, clusters: { demo: cluster } }), 'countersign.yaml');
}

function problems(given: Given): readonly string[] {
  const result = parse(given);
  const said = ({ path, message }: { readonly path: string; readonly message: string }) =>
    `${path.slice('clusters.demo.'.length)} ${message}`;
  return result.ok ? [] : result.problem.map(said);
}

function clusterOf(given: Given) {
  const result = parse(given);
  if (!result.ok) throw new Error(problems(given).join('; '));
  const cluster = result.value.configuration.clusters.get('demo');
  if (cluster === undefined) throw new Error('no cluster');
  return cluster;
}

describe('which VMs may join', () => {
  test('those that Google describes, or those of the list: nothing else has a default', () => {
    expect(clusterOf({ vtpm: federated }).attestation?.['gce-vtpm']).toEqual({
      ...federated,
      serviceAccounts: [],
      machines: 'any',
      instances: [],
      roots: [],
      intermediates: [],
      newKeys: 'refused',
    });
    const listed = clusterOf({ vtpm: { projects, instances: [vm] } }).attestation?.['gce-vtpm'];
    expect(listed?.instances).toEqual([{ ...vm, addresses: [], dnsNames: [] }]);
    expect(listed?.federation).toBeUndefined();
  });

  test('a profile that takes this evidence needs the section, and the section a profile', () => {
    expect(problems({})).toEqual(['attestation.gce-vtpm is required: a profile takes evidence of gce-vtpm']);
  });

  test('a project, and one of the two sources', () => {
    expect(problems({ vtpm: {} })).toEqual([
      'attestation.gce-vtpm.projects is required and must name a project',
      'attestation.gce-vtpm no VM may join: name federation, so that Google describes VMs, or name instances',
    ]);
  });

  test('a project alone admits every Shielded VM in it', () => {
    const alone = { projects, federation: { provider } };
    expect(problems({ vtpm: alone })).toEqual([
      'attestation.gce-vtpm a project alone admits every Shielded VM in it: name labels, serviceAccounts or machines: listed too',
    ]);
    for (const more of [{ labels: { a: '*' } }, { serviceAccounts: ['a@b.c'] }, { machines: 'listed' }])
      expect(problems({ vtpm: { ...alone, ...more } })).toEqual([]);
  });

  test('labels and service accounts are of VMs that Google describes', () => {
    for (const more of [{ labels: { a: '*' } }, { serviceAccounts: ['a@b.c'] }])
      expect(problems({ vtpm: { projects, instances: [vm], ...more } })).toEqual([
        'attestation.gce-vtpm labels and serviceAccounts are of VMs that Google describes: name federation',
      ]);
  });

  test('a federation names its provider', () => {
    expect(problems({ vtpm: { ...federated, federation: {} } })).toEqual([
      'attestation.gce-vtpm.federation.provider is required',
    ]);
    for (const wrong of [
      'https://iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign',
      provider.replace('42', 'my-project'),
      `${provider}/`,
      provider.replace('aws-pool', 'a/b/c/d'),
    ])
      expect(problems({ vtpm: { ...federated, federation: { provider: wrong } } })[0]).toContain(
        'federation.provider must be //iam',
      );
    for (const serviceAccount of [
      'reader',
      'a/b@p.iam.gserviceaccount.com',
      'a@evil.example',
      'a@p.gserviceaccount.com:x',
    ])
      expect(problems({ vtpm: { ...federated, federation: { provider, serviceAccount } } })[0]).toContain(
        'serviceAccount must be the mail address',
      );
    expect(
      problems({ vtpm: { ...federated, federation: { provider, serviceAccount: 'a@p.iam.gserviceaccount.com' } } }),
    ).toEqual([]);
  });

  test('a VM of the list says everything about itself', () => {
    expect(problems({ vtpm: { projects, instances: [{}] } })).toEqual(
      ['project', 'zone', 'id', 'name', 'signingKey'].map(
        (key) => `attestation.gce-vtpm.instances[0].${key} is required`,
      ),
    );
    const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
    const shortKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({
      type: 'spki',
      format: 'pem',
    });
    for (const [changed, problem] of [
      [{ project: '3' }, 'project is not among projects'],
      [{ signingKey: 'x' }, 'signingKey is not one PEM block'],
      [{ signingKey: ecKey }, 'signingKey is not one PEM block'],
      [{ signingKey: shortKey }, 'signingKey is not one PEM block'],
      [{ signingKey: signingKey.replace('MII', 'MIA') }, 'signingKey is not one PEM block'],
      [{ addresses: ['10.0.0.0/8'] }, 'addresses[0] is not an address'],
      [{ dnsNames: ['VM.example.com'] }, 'dnsNames[0] is not a DNS name in lower case'],
      [{ dnsNames: ['a b'] }, 'dnsNames[0] is not a DNS name in lower case'],
      [{ name: 'VM' }, 'name must be the name of a VM'],
      [{ zone: 'a/b' }, 'zone must be the name of a zone'],
      [{ id: '07' }, 'id must be the number of an instance'],
    ] as const)
      expect(problems({ vtpm: { projects, instances: [{ ...vm, ...changed }] } })[0]).toContain(problem);
    expect(problems({ vtpm: { projects, instances: [vm, { ...vm, name: 'vm-2' }] } })).toEqual([
      'attestation.gce-vtpm.instances[1].id is that of a VM before it',
    ]);
  });

  test('roots are certificates of CAs, and intermediates lead to one', () => {
    const both = { roots: [caCertificatePem], intermediates: [caCertificatePem] };
    expect(problems({ vtpm: { ...federated, ...both } })).toEqual([]);
    expect(problems({ vtpm: { ...federated, roots: [leafCertificatePem] } })[0]).toContain(
      'roots[0] is not the certificate of a CA',
    );
    expect(problems({ vtpm: { ...federated, intermediates: [leafCertificatePem] } })).toEqual([
      'attestation.gce-vtpm.intermediates lead to no root: name roots',
      'attestation.gce-vtpm.intermediates[0] is not the certificate of a CA',
    ]);
  });

  test('the attest function reads what was written', () => {
    const cluster = clusterOf({ vtpm: { ...federated, instances: [vm] } });
    expect(readBundledCluster(bundleAttestation(cluster)).attestation).toEqual(cluster.attestation);
  });
});

describe('who may ask', () => {
  const requesterOf = (profile: object, signerName = client) =>
    clusterOf({ vtpm: federated, profiles: { [client]: attested, [signerName]: profile } }).profiles.get(signerName)
      ?.requester;

  test('the plugin and the node itself', () => {
    expect(requesterOf(attested)).toEqual({ users: ['kubelet-bootstrap'], groups: [], nodeItself: true });
  });

  test('bootstrap tokens too, where the profile takes other evidence too', () => {
    const both = { attestation: { providers: ['gce-vtpm', 'tpm'] } };
    const cluster = {
      version: 1,
      clusters: {
        demo: {
          cas: { ca: { subject: { commonName: 'CA' } } },
          profiles: { [client]: both },
          attestation: { audience: 'a', 'gce-vtpm': federated, tpm: {} },
        },
      },
    };
    const result = parseConfiguration(JSON.stringify(cluster), 'countersign.yaml');
    expect(result.ok && result.value.configuration.clusters.get('demo')?.profiles.get(client)?.requester).toEqual({
      users: ['kubelet-bootstrap'],
      groups: ['system:bootstrappers', 'system:bootstrappers:*'],
      nodeItself: true,
    });
  });

  test('the requesters that the profile lists', () => {
    expect(requesterOf({ ...attested, requester: { groups: ['a'] } })).toEqual({
      users: [],
      groups: ['a'],
      nodeItself: true,
    });
    expect(requesterOf({ ...attested, requester: { users: ['b'] } })).toEqual({
      users: ['b'],
      groups: [],
      nodeItself: true,
    });
  });

  test('for serving certificates only the node itself', () => {
    expect(requesterOf(attested, serving)).toEqual({ users: [], groups: [], nodeItself: true });
  });
});

describe('requestBlocks', () => {
  const blocks = { requestBlocks: 'gce-vtpm' };

  test('is kept for sign and for the relay', () => {
    const cluster = clusterOf({ profiles: { [client]: blocks } });
    expect(cluster.profiles.get(client)?.requestBlocks).toBe('gce-vtpm');
    expect(readBundledCluster(bundleCluster(cluster)).profiles.get(client)?.requestBlocks).toBe('gce-vtpm');
  });

  test('is for node client certificates without attestation', () => {
    expect(problems({ profiles: { [serving]: blocks } })).toEqual([
      `profiles["${serving}"].requestBlocks is for the signers of node client certificates`,
    ]);
    expect(problems({ vtpm: federated, profiles: { [client]: { ...attested, ...blocks } } })).toEqual([
      `profiles["${client}"].requestBlocks is for profiles without attestation: here attestation.providers says whose blocks count`,
    ]);
    expect(problems({ profiles: { [client]: { requestBlocks: 'aws' } } })).toHaveLength(1);
  });
});
