/**
 * SECURITY.md, "With requests of gke-exec-auth-plugin", row by row, through the real handlers and the shipped provider `gce-vtpm`. The
 * test stands in for what Google answers.
 */
import 'reflect-metadata';
import { afterEach } from 'vitest';
import { keys, publicPem, vm, vmRequest } from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import type { VmRequestSpec } from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import { described, policy } from '../../../../corpus/attestation/gce-vtpm/provider-cases.ts';
import { openSite, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, CertificateSigningRequest } from '../../../../harness/attestation/attested-site.ts';
import { newKey, sharedKey } from '../../../../harness/x509/requests.ts';
import { askBoth, describeThreats } from './rows.ts';
import type { Asked, Threat } from './rows.ts';

const opened: AttestedSite[] = [];
afterEach(() => {
  for (const site of opened.splice(0)) site.close();
});

async function scene(): Promise<(object: CertificateSigningRequest) => Promise<Asked>> {
  const refuse = () => Promise.reject(new Error('no AWS'));
  const { projects, labels, federation } = policy;
  const site = await openSite({
    clusters: {
      prod: {
        profiles: { [signers.client]: { attestation: { providers: ['gce-vtpm'] } } },
        approval: { [signers.client]: 'approve' },
        attestation: { 'gce-vtpm': { projects, labels, federation } },
      },
    },
    aws: { sts: refuse, ec2: { describeInstance: refuse }, regionCertificates: new Map() },
    // Every VM is there, and the vTPM of the true one signs with its key.
    compute: () => ({
      describeInstance: ({ zone, instanceId }) => Promise.resolve({ ...described, zone, instanceId }),
      signingKey: ({ instanceId }) =>
        Promise.resolve({ kind: 'key', pem: publicPem(instanceId === vm.instanceId ? keys.vm : keys.other) }),
    }),
    now: Date.now,
  });
  opened.push(site);
  return (object) => askBoth(site, object);
}

function posted(spec: VmRequestSpec = {}): CertificateSigningRequest {
  const by = { username: 'kubelet-bootstrap', groups: ['system:authenticated'] };
  return requestFor({ node: vm.name, by, request: vmRequest({ key: newKey('P-256'), ...spec }) });
}

const tried = (spec: VmRequestSpec) => async () => (await scene())(posted(spec));

const threats: Readonly<Record<string, Threat>> = {
  "hold the plugin's bootstrap credentials, which are in the metadata of every VM": {
    codes: ['AttestationMissing'],
    tries: [tried({ blocks: (usual) => usual.slice(0, 1) })],
  },
  'name a project of their own, whose VMs, keys and answers are theirs': {
    codes: ['IdentityNotAllowed'],
    tries: [tried({ identity: { projectNumber: '4242' } }), tried({ identity: { projectId: 'theirs' } })],
  },
  'claim with a VM of the project to be another VM': {
    codes: ['AttestationInvalid', 'IdentityNotAllowed'],
    tries: [
      tried({ signer: keys.other }),
      tried({ signer: keys.other, identity: { instanceId: '42', name: 'worker-2' } }),
    ],
  },
  'put a key of their own under what a vTPM certified': {
    codes: ['AttestationInvalid'],
    tries: [tried({ attest: { name: Buffer.concat([Buffer.from('000b', 'hex'), Buffer.alloc(32, 7)]) } })],
  },
  'bring an attestation certificate of their own': {
    codes: ['AttestationInvalid'],
    tries: [tried({ signer: keys.other, certificate: { key: keys.other } })],
  },
  'have a quote, or a certification with more in it, taken for the certification of a key': {
    codes: ['AttestationInvalid', 'RequestMalformed'],
    tries: [
      tried({ attest: { type: '8018' } }),
      tried({ attest: { extraData: Buffer.from('more') } }),
      tried({ attest: { trailing: Buffer.from([0]) } }),
      tried({ blocks: (usual) => [...usual, usual[1]!] }),
    ],
  },
  'start a VM that has the name of a node': {
    codes: ['TofuNodeTaken'],
    tries: [
      async () => {
        const ask = await scene();
        await ask(posted());
        return ask(posted({ signer: keys.other, identity: { instanceId: '42' } }));
      },
    ],
  },
  'keep a request of a VM with its key, and send it after the VM has joined': {
    codes: ['TofuReuse'],
    tries: [
      async () => {
        const ask = await scene();
        const kept = posted({ key: newKey('P-256') });
        await ask(posted());
        return ask(kept);
      },
    ],
  },
  'send it before the VM joins': { codes: ['issued'], tries: [tried({ key: sharedKey('P-256') })] },
};

describeThreats('### With requests of gke-exec-auth-plugin', threats);
