/** What is posted by who has the relay's credential: any object, approved by themselves, with a key of their own. */
import { descriptionLasts } from '../../../../../core/attestation/evidence/last-description.ts';
import { prove, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { Asked, Proved, SiteOptions } from '../../../../harness/attestation/attested-site.ts';
import { contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';
import { captured, clusters, register, serving } from './attempt.ts';
import type { Sans, Scene } from './attempt.ts';

export interface Answered {
  readonly said: string;
  readonly posted: (scene: Scene) => object | Promise<object>;
  /** What it says beside the request: a Cluster API Machine of its own making. */
  readonly context?: object;
  readonly clusters?: SiteOptions['clusters'];
}

const profile = { ca: 'ca', maxTtl: '1d' };
const attested = { ...profile, attestation: { providers: ['aws'] } };

/** Every node client profile attested and enforced, beside every other kind of profile there is. */
export const enforced: SiteOptions['clusters'] = {
  prod: {
    ...clusters['prod'],
    profiles: {
      ...(clusters['prod']?.['profiles'] as object),
      'kubernetes.io/legacy-unknown': profile,
      'example.com/custom': {
        ...profile,
        usages: { allowed: ['digital signature', 'key encipherment', 'client auth', 'server auth'] },
        subject: { commonNames: ['*'], organizations: ['*'] },
        sans: { dns: ['*'], ip: ['10.0.0.0/8'] },
      },
    },
  },
};

function only(profiles: object): SiteOptions['clusters'] {
  return { prod: { ...clusters['prod'], profiles: { [signers.serving]: attested, ...profiles } } };
}
const audited = { ...profile, attestation: { providers: ['aws'], mode: 'audit' } };

const client = (asked: Asked = {}) => requestFor(asked);
const masters = { subject: { O: 'system:masters', CN: 'admin' } };
const outsider = { username: 'eve', groups: ['system:authenticated'] };
const served = (sans: Sans, asked: Proved = {}) => ({ posted: (scene: Scene) => serving(scene, sans, asked) });

export const whereEnforced = {
  "a node's client certificate, without evidence": { said: 'AttestationMissing', posted: () => client() },
  'the same, in the name of that node itself': {
    said: 'AttestationMissing',
    posted: async (scene: Scene) => {
      await register(scene, scene.platform.launch('worker-1'));
      return client({ by: 'node' });
    },
  },
  'the same, with a Machine object that speaks for it': {
    said: 'AttestationMissing',
    posted: () => client(),
    context: contextOf([machineObject({ nodeName: 'worker-1', addresses: ['10.0.0.7'] })]),
  },
  'the same, with evidence read from a request, for a key of its own': {
    said: 'AttestationInvalid',
    posted: (scene: Scene) => captured(scene, {}),
  },
  'the same, with evidence of an instance of its own account': {
    said: 'IdentityNotAllowed',
    posted: ({ platform, proved }: Scene) => proved(platform.launch('worker-1', { account: '999988887777' })),
  },
  'the very bytes of a request that it read, under whatever UID': {
    said: 'issued',
    posted: async ({ platform, site }: Scene) => {
      const { request } = prove(platform, platform.launch('worker-1'));
      await site.attest(requestFor({ request }));
      return requestFor({ request });
    },
  },
  'in the name of a user who is not a permitted requester': {
    said: 'RequesterNotAllowed',
    posted: () => client({ by: outsider }),
  },
  "a node's name from a signer for users": {
    said: 'NameReserved',
    posted: () => client({ signerName: 'kubernetes.io/kube-apiserver-client' }),
  },
  "a node's name from the legacy signer": {
    said: 'NameReserved',
    posted: () => client({ signerName: 'kubernetes.io/legacy-unknown' }),
  },
  "a node's name from a signer of one's own": {
    said: 'NameReserved',
    posted: () => client({ signerName: 'example.com/custom' }),
  },
  'a client certificate from a signer for serving': {
    said: 'SignerValidationFailure',
    ...served({ ip: ['10.0.0.7'] }, { usages: ['digital signature', 'client auth'] }),
  },
  '`system:masters` from a signer for users': {
    said: 'NameReserved',
    posted: () => client({ signerName: 'kubernetes.io/kube-apiserver-client', csr: masters }),
  },
  '`system:masters` from the legacy signer': {
    said: 'NameReserved',
    posted: () => client({ signerName: 'kubernetes.io/legacy-unknown', csr: masters }),
  },
  "`system:masters` from a signer of one's own": {
    said: 'NameReserved',
    posted: () => client({ signerName: 'example.com/custom', csr: masters }),
  },
  "a user's client certificate, from a profile without attestation": {
    said: 'issued',
    posted: () => client({ signerName: 'kubernetes.io/kube-apiserver-client', csr: { subject: { CN: 'alice' } } }),
  },
  "a serving certificate for a registered machine's own names, for a key of its own": {
    said: 'issued',
    ...served({ ip: ['10.0.0.7'], dns: ['worker-1', 'ip-10-0-0-7.eu-central-1.compute.internal'] }),
  },
  'a serving certificate for an address of `addressRanges` that no machine has yet': {
    said: 'issued',
    ...served({ ip: ['192.168.0.7'] }),
  },
  "a serving certificate for another machine's address": { said: 'NameNotOwned', ...served({ ip: ['10.0.0.8'] }) },
  'a serving certificate for a service of the cluster': {
    said: 'NameReserved',
    ...served({ dns: ['kubernetes.default.svc'] }),
  },
  'a serving certificate for a node that has no machine on record': {
    said: 'AttestationMissing',
    posted: () => client({ signerName: signers.serving, by: 'node', csr: { sans: { dns: ['worker-1'] } } }),
  },
  'a serving certificate for a machine that does not run': {
    said: 'IdentityNotAllowed',
    posted: async (scene: Scene) => {
      const object = await serving(scene, { ip: ['10.0.0.7'] });
      for (const id of scene.platform.aws.instances.keys()) scene.platform.aws.stop(id);
      scene.wait(descriptionLasts);
      return object;
    },
  },
  'a serving certificate from the signer for evidence, without any': {
    said: 'AttestationMissing',
    ...served({ ip: ['10.0.0.7'] }, { signerName: signers.awsServing }),
  },
} as const satisfies Readonly<Record<string, Answered>>;

const insecure = only({ [signers.insecureClient]: profile });
const anyNode = client({ node: 'cp-1', by: 'node' });
const free = (): object => client({ node: 'cp-1', signerName: signers.insecureClient });

export const whereLess = {
  "no attestation: any node's client certificate": {
    said: 'issued',
    posted: () => anyNode,
    clusters: only({ [signers.client]: profile }),
  },
  "`required: false`: any node's client certificate, without evidence": {
    said: 'issued',
    posted: () => anyNode,
    clusters: only({ [signers.client]: { ...profile, attestation: { providers: ['aws'], required: false } } }),
  },
  "`mode: audit`: any node's client certificate": {
    said: 'issued',
    posted: () => anyNode,
    clusters: only({ [signers.client]: audited }),
  },
  "`mode: audit` for serving: a serving certificate for any machine's address": {
    said: 'issued',
    posted: () =>
      client({ node: 'cp-1', signerName: signers.serving, by: 'node', csr: { sans: { ip: ['10.0.0.8'] } } }),
    clusters: only({ [signers.client]: attested, [signers.serving]: audited }),
  },
  '`mode: audit` for serving: a serving certificate for a service of the cluster': {
    said: 'NameReserved',
    posted: () =>
      client({
        node: 'cp-1',
        signerName: signers.serving,
        by: 'node',
        csr: { sans: { dns: ['kubernetes.default.svc'] } },
      }),
    clusters: only({ [signers.client]: attested, [signers.serving]: audited }),
  },
  '`insecure`: the client certificate of a node name that no machine has': {
    said: 'issued',
    posted: free,
    clusters: insecure,
  },
  '`insecure`: the client certificate of a node name that a machine has': {
    said: 'TofuReuse',
    posted: async ({ site }: Scene) => {
      await site.attest(free());
      return free();
    },
    clusters: insecure,
  },
  '`insecure`: in the name of that node itself': {
    said: 'RequesterNotAllowed',
    posted: () => client({ node: 'cp-1', by: 'node', signerName: signers.insecureClient }),
    clusters: insecure,
  },
  "`insecure`: a serving certificate for such a node's name": {
    said: 'IdentityNotAllowed',
    posted: async ({ site }: Scene) => {
      await site.attest(free());
      return client({ node: 'cp-1', signerName: signers.serving, by: 'node', csr: { sans: { dns: ['cp-1'] } } });
    },
    clusters: insecure,
  },
} as const satisfies Readonly<Record<string, Answered>>;
