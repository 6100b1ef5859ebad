/** What an attacker tries, the code of its refusal, and the deployment in which it is tried. */
import type { AttestationStore } from '../../../../../core/ports/attestation-store.ts';
import type { RefusalCode } from '../../../../../core/outcome/outcome.ts';
import { audience, awsSettings, prove, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform, Proved, SiteOptions } from '../../../../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../../../../harness/fake-aws/machine/instance.ts';
import {
  makeNodeRequest,
  withEvidence,
  type NodeEvidence,
} from '../../../../harness/fake-aws/machine/node-evidence.ts';
import { newKey } from '../../../../harness/x509/requests.ts';

export interface Scene {
  readonly platform: AwsPlatform;
  readonly site: AttestedSite;
  readonly proved: (instance: FakeInstance, asked?: Proved) => object;
  /** So many milliseconds pass for the functions, which have seen the machines before. */
  readonly wait: (milliseconds: number) => void;
}

export interface Attempt {
  readonly code: RefusalCode;
  /** Words of the one check that must have caught it, where a code stands for many. */
  readonly says?: RegExp;
  readonly posted: (scene: Scene) => object | Promise<object>;
  /** What attest says where it was asked before and only sign can know: an approval is not taken back. */
  readonly attested?: 'approve';
  readonly cluster?: string;
  readonly store?: (embedded: AttestationStore) => AttestationStore;
}

/** By who tries, and how. */
export type Attempts = Readonly<Record<string, Readonly<Record<string, Attempt>>>>;

type Posted = Attempt['posted'];
type More = Partial<Attempt>;
export const refused = (code: RefusalCode, posted: Posted, more: More = {}): Attempt => ({ code, posted, ...more });
export const invalid = (says: RegExp, posted: Posted, more: More = {}): Attempt =>
  refused('AttestationInvalid', posted, { says, ...more });
export const notAllowed = (says: RegExp, posted: Posted): Attempt => refused('IdentityNotAllowed', posted, { says });

const profile = { ca: 'ca', maxTtl: '1d' };
const attested = { ...profile, attestation: { providers: ['aws'] } };
const cluster = (name: string): SiteOptions['clusters'][string] => ({
  profiles: {
    'kubernetes.io/kube-apiserver-client': profile,
    [signers.client]: attested,
    [signers.serving]: attested,
    [signers.awsClient]: profile,
    [signers.awsServing]: profile,
  },
  attestation: {
    audience: audience(name),
    aws: awsSettings,
    // No machine had these addresses yet, so only the reservation can refuse the first request for one.
    addressRanges: ['192.168.0.0/24', '10.96.0.0/24'],
  },
  reservedAddresses: ['192.168.0.100', '10.96.0.0/12'],
  reservedNames: ['api.example.com'],
});
export const clusters: SiteOptions['clusters'] = { prod: cluster('prod'), other: cluster('other') };

/** A CSR for the true machine's name and place, so that nothing but its evidence is wrong. */
function csrFor(instance: FakeInstance, { node = 'worker-1', key = newKey('P-256'), csr }: Proved): string {
  const providerId = `aws:///${instance.availabilityZone}/${instance.instanceId}`;
  return makeNodeRequest(node, key, { providerId, ...(csr === undefined ? {} : { csr }) }).pem;
}

/** The evidence of one request in another, whose key, node and signer are what `asked` says. */
export function captured({ platform }: Pick<Scene, 'platform'>, asked: Proved, from: Proved = {}): object {
  const worker = platform.launch('worker-1');
  const { version, data } = prove(platform, worker, from);
  return requestFor({ ...asked, request: withEvidence(csrFor(worker, asked), version, JSON.stringify(data)) });
}

/** The same request, its evidence changed. */
export function altered(evidence: NodeEvidence, data: object): object {
  const changed = JSON.stringify({ ...evidence.data, ...data });
  return requestFor({ request: withEvidence(evidence.csr.pem, evidence.version, changed) });
}

export async function letIn({ site }: Pick<Scene, 'site'>, object: object): Promise<void> {
  const { said, message } = await site.attest(object);
  if (said !== 'approve') throw new Error(`${said}: ${message}`);
}

export function register(scene: Scene, instance: FakeInstance, asked: Proved = {}): Promise<void> {
  return letIn(scene, scene.proved(instance, asked));
}

export type Sans = NonNullable<NonNullable<Proved['csr']>['sans']>;

/** What worker-1's stock kubelet posts, its machine registered. */
export async function serving(scene: Scene, sans: Sans, asked: Proved = {}): Promise<object> {
  await register(scene, scene.platform.launch('worker-1', { privateIp: '10.0.0.7' }));
  return requestFor({ signerName: signers.serving, by: 'node', csr: { sans }, ...asked });
}
