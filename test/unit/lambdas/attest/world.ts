/** attest and issue over the embedded stores, a real key and the null provider, with time in the test's hands. */
import { createHash, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import type { ClusterAttestation } from '../../../../core/configuration/model/attestation.ts';
import type { ProfileAttestation, Profile } from '../../../../core/policy/profile.ts';
import type { AttestContext } from '../../../../core/ports/signing-endpoint.ts';
import type {
  AttestationAdmin,
  AttestationStore,
  AuditItem,
  IdentityRecord,
} from '../../../../core/ports/attestation-store.ts';
import { attest } from '../../../../core/attest.ts';
import type { AttestOutcome } from '../../../../core/attest.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { evidenceLabels } from '../../../../core/attestation/evidence/evidence.ts';
import { issue } from '../../../../core/issue.ts';
import { decodeRequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import type { SignOutcome } from '../../../../core/outcome/outcome.ts';
import type { CertificateLedger } from '../../../../core/ports/certificate-ledger.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { createNullPlatform } from '../../../harness/attestation/null-provider.ts';
import type { NullEvidence, NullOptions, NullPlatform } from '../../../harness/attestation/null-provider.ts';
import { makeRequest, newKey, pemBlock } from '../../../harness/x509/requests.ts';
import type { RequestSpec, TestKey } from '../../../harness/x509/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';

export const clientSigner = 'kubernetes.io/kube-apiserver-client-kubelet';
export const servingSigner = 'kubernetes.io/kubelet-serving';
const providerIdType = '1.3.6.1.4.1.11129.2.1.21';

export interface World {
  readonly cluster: ClusterConfiguration;
  readonly platform: NullPlatform;
  /** In the order of the options. */
  readonly others: readonly NullPlatform[];
  readonly store: AttestationStore;
  readonly register: AttestationAdmin;
  readonly ledger: CertificateLedger;
  readonly clock: { now: number };
  readonly attest: (object: object, context?: AttestContext) => Promise<AttestOutcome>;
  /** As the sign function does it: sign asks attest itself where it was not asked before. */
  readonly issue: (object: object) => Promise<SignOutcome>;
  /** The same, wired without the store of verdicts. */
  readonly issueBlindly: (object: object) => Promise<SignOutcome>;
  /** Replaces ports, for faults: what a writer of the store could do. */
  readonly change: (ports: Partial<Pick<World, 'store' | 'ledger'>>) => World;
  readonly close: () => void;
}

export interface WorldOptions extends NullOptions {
  readonly attestation?: Partial<ProfileAttestation>;
  readonly settings?: Partial<ClusterAttestation>;
  readonly profile?: Partial<Profile>;
  /** Further providers that the cluster has configured. */
  readonly others?: readonly NullOptions[];
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const platform = createNullPlatform(options);
  const others = (options.others ?? []).map(createNullPlatform);
  const providers = new Map([platform, ...others].map(({ provider }) => [provider.name, provider] as const));
  const attestations = openEmbeddedAttestations(':memory:');
  const certificates = openEmbeddedLedger(':memory:');
  const authority = await testAuthority();
  const clock = { now: Date.now() };
  const cluster = attested(defaultCluster('demo', { maxTtlSeconds: 86_400 }), platform.provider.name, options);

  function world(store: AttestationStore, ledger: CertificateLedger): World {
    const ports = { now: () => clock.now, randomBytes };
    const ask = (object: object, context: AttestContext = {}): Promise<AttestOutcome> =>
      attest(decoded(object), context, cluster, { ...ports, store, providers });
    const signing = { ...ports, ledger, locks: store, authority: () => Promise.resolve(authority) };
    return {
      cluster,
      platform,
      others,
      store,
      register: attestations.register,
      ledger,
      clock,
      attest: ask,
      issue: (object) =>
        issue(decoded(object), cluster, {
          ...signing,
          attestations: {
            findVerdict: (uid, now) => store.findVerdict(uid, now),
            findIdentity: (identity) => store.findIdentity(identity),
            findLock: (subject) => store.findLock(subject),
            attest: async () => void (await ask(object)),
          },
        }),
      issueBlindly: (object) => issue(decoded(object), cluster, signing),
      change: (more) => world(more.store ?? store, more.ledger ?? ledger),
      close: () => {
        attestations.close();
        certificates.close();
      },
    };
  }
  return world(attestations.store, certificates.ledger);
}

let shared: Promise<Authority> | undefined;

/** One for all worlds: making a CA takes longer than the rest. */
function testAuthority(): Promise<Authority> {
  shared ??= createTestAuthority('demo ca', 24 * 365).then(({ certificatePem, keyPem }) => ({
    name: 'ca',
    certificate: new Uint8Array(new X509Certificate(certificatePem).raw),
    intermediates: [],
    signer: embeddedSigner(keyPem),
  }));
  return shared;
}

function attested(cluster: ClusterConfiguration, provider: string, options: WorldOptions): ClusterConfiguration {
  const attestation: ProfileAttestation = {
    providers: [provider],
    required: true,
    mode: 'enforce',
    subjectAccessReview: false,
    ...options.attestation,
  };
  const profiles = new Map(cluster.profiles);
  for (const signerName of [clientSigner, servingSigner]) {
    const profile = profiles.get(signerName);
    if (profile === undefined) throw new Error(`no profile ${signerName}`);
    const groups = signerName === clientSigner ? ['system:bootstrappers', 'system:bootstrappers:*'] : [];
    const requester = { users: [], groups, nodeItself: true } as const;
    profiles.set(signerName, { ...profile, requester, attestation, ...options.profile });
  }
  const settings: ClusterAttestation = {
    audience: 'account/region/demo',
    retireTerminated: true,
    addressRanges: [],
    ...options.settings,
  };
  return { ...cluster, profiles, attestation: settings };
}

function decoded(object: object): RequestObject {
  const read = decodeRequestObject(object);
  if (!read.ok) throw new Error(read.problem.message);
  return read.value;
}

export interface Asked {
  readonly node?: string;
  readonly key?: TestKey;
  /** Left out = none is sent. */
  readonly evidence?: NullEvidence;
  readonly version?: string;
  /** `null` = no extension. */
  readonly providerId?: string | null;
  /** By default a bootstrap token's user; `node` = the node itself. */
  readonly by?: 'bootstrap' | 'node' | { readonly username: string; readonly groups: readonly string[] };
  readonly signerName?: string;
  readonly uid?: string;
  readonly approved?: boolean;
  readonly sans?: NonNullable<RequestSpec['sans']>;
  readonly spec?: RequestSpec;
  /** Instead of everything that is in spec.request. */
  readonly request?: string;
  readonly usages?: readonly string[];
}

/** The whole object as the API server stores it. Each call makes a new one, with a new UID unless given. */
export function requestOf(asked: Asked = {}): Readonly<Record<string, unknown>> & {
  readonly metadata: { readonly name: string; readonly uid: string };
} {
  const { node = 'node-1', signerName = clientSigner, by = 'bootstrap', version = 'null/v1', sans } = asked;
  const serving = signerName.includes('serving');
  const id = asked.evidence?.machine;
  const providerId = asked.providerId === undefined ? (id === undefined ? null : `null:///${id}`) : asked.providerId;
  const made = makeRequest({
    key: asked.key ?? newKey('P-256'),
    subject: { O: ['system:nodes'], CN: `system:node:${node}` },
    ...(sans === undefined ? {} : { sans }),
    ...(providerId === null ? {} : { extensions: [{ oid: providerIdType, value: der.utf8(providerId) }] }),
    ...asked.spec,
  });
  const blocks =
    asked.evidence === undefined
      ? ''
      : pemBlock(evidenceLabels.provider, Buffer.from(version)) +
        pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify({ v: 1, ...asked.evidence })));
  const requester =
    by === 'bootstrap'
      ? { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', 'system:authenticated'] }
      : by === 'node'
        ? { username: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] }
        : by;
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', uid: asked.uid ?? randomUUID() },
    spec: {
      request: Buffer.from(asked.request ?? made.pem + blocks).toString('base64'),
      signerName,
      usages: asked.usages ?? ['digital signature', serving ? 'server auth' : 'client auth'],
      ...requester,
    },
    status: {
      conditions: asked.approved === true ? [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] : [],
    },
  };
}

/** What `countersign tofu reset` does with the record of an identity. */
export async function forget(world: World, identity: string): Promise<void> {
  const record = await world.store.findIdentity(identity);
  if (record === undefined) throw new Error(`no record of ${identity}`);
  const done = await world.register.reset(record, auditOf(world, 'reset', identity));
  if (done.kind !== 'written') throw new Error(`reset: ${done.kind}`);
}

/** The machine is terminated, and a successor takes its node name; then the machine is back as it was. */
export async function retire(world: World, machine: string, nodeName: string): Promise<void> {
  const { machines } = world.platform;
  const before = machines.get(machine);
  if (before === undefined) throw new Error(`no machine ${machine}`);
  machines.set(machine, { ...before, state: 'gone' });
  machines.set('successor', { nodeNames: [nodeName] });
  const answer = said(await world.attest(requestOf({ evidence: { machine: 'successor' }, node: nodeName })));
  if (answer !== 'approve') throw new Error(`the successor: ${answer}`);
  machines.set(machine, before);
}

/** What `countersign tofu adopt` writes of a machine that runs already. */
export async function adopt(world: World, of: Pick<IdentityRecord, 'identity' | 'nodeName'>): Promise<void> {
  const seen = { firstSeen: world.clock.now, lastSeen: world.clock.now, renewals: 0, uses: 0, rev: 1 };
  const record = { ...of, ...seen, state: 'active', previousSpkis: [], providerId: '', addresses: [] } as const;
  const done = await world.register.adopt(record, auditOf(world, 'adopt', of.identity));
  if (done.kind !== 'written') throw new Error(`adopt: ${done.kind}`);
}

let audited = 0;
function auditOf({ clock }: World, action: AuditItem['action'], subject: string): AuditItem {
  audited += 1;
  return { id: String(audited).padStart(26, '0'), at: clock.now, by: 'me', action, subject, reason: 'a test' };
}

export function approvedOf(object: object): object {
  return { ...object, status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] } };
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A decision and its first code, for tables. */
export function said(outcome: AttestOutcome): string {
  switch (outcome.kind) {
    case 'approve':
      return outcome.audit === undefined
        ? 'approve'
        : `audit ${outcome.audit === 'unjudged' ? 'unjudged' : outcome.audit[0].code}`;
    case 'deny':
    case 'challenge':
      return outcome.violations[0].code;
    case 'ignore':
      return outcome.why;
  }
}

export function signed(outcome: SignOutcome): string {
  return outcome.kind === 'refused' ? outcome.violations[0].code : outcome.kind;
}
