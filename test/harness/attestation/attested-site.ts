/**
 * A deployment whose machines prove themselves, in one process: a countersign.yaml as an operator writes it, both real
 * handlers, the real adapters for STS and EC2 over the strict fake AWS on loopback, and the embedded stores unless a test
 * brings others. Time is the test's.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { EC2Client } from '@aws-sdk/client-ec2';
import { ec2Endpoint, ec2Fleet, endorsementKeyEndpoint } from '../../../adapters/aws/ec2.ts';
import type { ConnectEc2 } from '../../../adapters/aws/ec2.ts';
import { openEmbeddedAttestations } from '../../../adapters/embedded/attestations.ts';
import { openEmbeddedLedger } from '../../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import type { HttpEvent, HttpHandler } from '../../../adapters/lambda/http.ts';
import { attestCall } from '../../../adapters/lambda/attest-call.ts';
import { stsEndpoint } from '../../../adapters/aws/sts.ts';
import { loopbackCaller } from '../../../dev/serve/loopback-caller.ts';
import type { AttestationAdmin, AttestationStore } from '../../../core/ports/attestation-store.ts';
import type { AwsPorts } from '../../../core/attestation/aws/endpoints.ts';
import { createProviders } from '../../../core/attestation/providers.ts';
import type { ProviderPorts } from '../../../core/attestation/providers.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { CertificateLedger } from '../../../core/ports/certificate-ledger.ts';
import { createAttestHandler } from '../../../lambdas/attest/handler.ts';
import { noCrls } from '../stack/no-crls.ts';
import { createSignHandler } from '../../../lambdas/sign/handler.ts';
import { startFakeEc2, type FakeEc2 } from '../fake-aws/ec2.ts';
import type { FakeInstance, InstanceSpec } from '../fake-aws/machine/instance.ts';
import {
  makeNodeEvidence,
  makeNodeRequest,
  type NodeEvidence,
  type NodeEvidenceOptions,
} from '../fake-aws/machine/node-evidence.ts';
import { startFakeSts, type FakeSts } from '../fake-aws/sts.ts';
import { createFakeAws, type FakeAws } from '../fake-aws/world.ts';
import { newKey, type RequestSpec, type TestKey } from '../x509/requests.ts';
import { createTestAuthority } from '../x509/test-certificates.ts';
import { postedEvent } from '../lambda/callers.ts';

export const [account, region] = ['111122223333', 'eu-central-1'];
export const audience = (cluster: string): string => `${account}/${region}/${cluster}`;
export const signers = {
  client: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
  awsClient: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
  awsServing: 'cluster.x-k8s.io/kubelet-serving-aws',
  insecureClient: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure',
} as const;

/** What a cluster of countersign.yaml says, where machines are EC2 instances named by their tag. */
export const awsSettings = {
  accounts: { [account]: {} },
  regions: [region],
  vpcs: ['vpc-0aaaaaaaaaaaaaaaa'],
  tags: { 'kubernetes.io/cluster/prod': 'owned' },
  nodeName: ['tag:Name'],
};

export interface AwsPlatform {
  readonly aws: FakeAws;
  readonly sts: FakeSts;
  readonly ec2: FakeEc2;
  readonly ports: AwsPorts;
  readonly now: () => number;
  advance(milliseconds: number): void;
  /** An instance that may join under this name. */
  launch(name: string, spec?: InstanceSpec): FakeInstance;
  close(): Promise<void>;
}

export async function startAwsPlatform(): Promise<AwsPlatform> {
  let ahead = 0;
  const now = (): number => Date.now() + ahead;
  const aws = createFakeAws({ now });
  const [sts, ec2] = [await startFakeSts({ aws }), await startFakeEc2({ aws })];
  const credentials = aws.createUser(account, 'attest', ['ec2:DescribeInstances', 'ec2:GetInstanceTpmEkPub']);
  const clients: EC2Client[] = [];
  const connect: ConnectEc2 = (where) => {
    const client = new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 });
    client.config.systemClockOffset = ahead;
    clients.push(client);
    return client;
  };
  return {
    aws,
    sts,
    ec2,
    ports: {
      sts: stsEndpoint({ endpoint: sts.url }),
      ec2: ec2Endpoint(connect),
      fleet: ec2Fleet(connect),
      endorsementKeys: endorsementKeyEndpoint(connect),
      regionCertificates: aws.regionCertificates(region),
    },
    now,
    advance(milliseconds) {
      ahead += milliseconds;
      for (const client of clients) client.config.systemClockOffset = ahead;
    },
    launch: (name, spec = {}) =>
      aws.launch({
        account,
        region,
        ...spec,
        tags: { 'kubernetes.io/cluster/prod': 'owned', Name: name, ...spec.tags },
      }),
    async close() {
      for (const client of clients) client.destroy();
      await sts.close();
      await ec2.close();
    },
  };
}

/** What became of a call: `approve` or `issued`, else the first reason that is given, or `busy`. */
export interface Said {
  readonly said: string;
  readonly message: string;
  readonly certificatePem?: string;
  /** Of a verdict. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Both functions, as one process of each has them. */
export interface Functions {
  /** As the relay forwards a request on arrival. */
  attest(object: object, options?: { readonly context?: object; readonly cluster?: string }): Promise<Said>;
  /** As the relay forwards an approved one. */
  sign(object: object, options?: { readonly cluster?: string }): Promise<Said>;
}

export interface AttestedSite extends Functions {
  /** Of cluster `prod`, as a stranger reads them. */
  readonly store: AttestationStore;
  readonly register: AttestationAdmin;
  readonly ledger: CertificateLedger;
  /** Over the same records, with other ways to them. */
  functions(ports: Ports): Functions;
  close(): void;
}

interface Ports {
  readonly aws?: AwsPorts;
  readonly store?: (embedded: AttestationStore) => AttestationStore;
  readonly ledger?: (embedded: CertificateLedger) => CertificateLedger;
}

export interface SiteOptions {
  /** Clusters of countersign.yaml, `prod` among them: profiles, attestation; the CA is added. */
  readonly clusters: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly aws: AwsPorts;
  /** For clusters that take evidence of Google's VMs. */
  readonly compute?: ProviderPorts['compute'];
  readonly googleKeySet?: ProviderPorts['googleKeySet'];
  readonly now: () => number;
  readonly store?: Ports['store'];
}

export function readClusters(clusters: SiteOptions['clusters']): ReadonlyMap<string, ClusterConfiguration> {
  const cas = { ca: { subject: { commonName: 'site ca' } } };
  const written = Object.entries(clusters).map(([name, own]) => [name, { cas, ...own }] as const);
  const text = JSON.stringify({ version: 1, clusters: Object.fromEntries(written) });
  const parsed = parseConfiguration(text, 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('; '));
  return parsed.value.configuration.clusters;
}

export async function openSite({
  clusters,
  aws,
  compute,
  googleKeySet,
  now,
  ...rest
}: SiteOptions): Promise<AttestedSite> {
  const authority = await siteAuthority();
  const states = new Map(
    [...readClusters(clusters)].map(([name, cluster]) => {
      const attestations = openEmbeddedAttestations(':memory:');
      const certificates = openEmbeddedLedger(':memory:');
      return [name, { cluster, attestations, certificates }] as const;
    }),
  );
  const state = (name: string) => {
    const found = states.get(name);
    if (found === undefined) throw new Error(`no cluster ${name}`);
    return found;
  };

  function functions(ports: Ports): Functions {
    const workers = new Map(
      [...states].map(([name, { cluster, attestations, certificates }]) => {
        const { attestation } = cluster;
        const store = ports.store?.(attestations.store) ?? attestations.store;
        const tpm = {
          challengeKey: attestations.challengeKey,
          randomBytes,
          findMachine: (machine: string) => store.findMachine(machine),
        };
        const google = {
          ...(compute === undefined ? {} : { compute }),
          ...(googleKeySet === undefined ? {} : { googleKeySet }),
        };
        const platforms = { aws: ports.aws ?? aws, tpm, ...google };
        const providers = attestation === undefined ? new Map() : createProviders(attestation, platforms);
        return [
          name,
          { providers, store, ledger: ports.ledger?.(certificates.ledger) ?? certificates.ledger },
        ] as const;
      }),
    );
    const worker = (name: string) => {
      const found = workers.get(name);
      if (found === undefined) throw new Error(`no cluster ${name}`);
      return found;
    };
    const known = {
      cluster: (name: string) => states.get(name)?.cluster,
      caller: loopbackCaller,
      now,
      randomBytes: (count: number) => new Uint8Array(randomBytes(count)),
      log: () => {},
    };
    const attest = createAttestHandler({ ...known, attestation: async (name) => worker(name) });
    const sign = createSignHandler({
      crls: () => noCrls,
      ...known,
      version: 'test',
      ledger: (name) => worker(name).ledger,
      locks: (name) => worker(name).store,
      authority: async () => authority,
      attestations: (name) => ({
        findVerdict: (uid, at) => worker(name).store.findVerdict(uid, at),
        findIdentity: (identity) => worker(name).store.findIdentity(identity),
        findLock: (subject) => worker(name).store.findLock(subject),
        attest: async (object) => void (await attest.call(attestCall(name, object))),
      }),
    });
    return functionsOf(attest.http, sign);
  }

  const { attestations, certificates } = state('prod');
  return {
    store: attestations.store,
    register: attestations.register,
    ledger: certificates.ledger,
    ...functions(rest.store === undefined ? {} : { store: rest.store }),
    functions,
    close() {
      for (const each of states.values()) for (const opened of [each.attestations, each.certificates]) opened.close();
    },
  };
}

/** What two handlers say, in short. */
export function functionsOf(attest: HttpHandler, sign: HttpHandler): Functions {
  return {
    attest: (object, { context, cluster = 'prod' } = {}) =>
      post(attest, postedEvent(cluster, 'attest', { request: object, ...(context === undefined ? {} : { context }) })),
    sign: (object, { cluster = 'prod' } = {}) => post(sign, postedEvent(cluster, 'sign', object)),
  };
}

let shared: Promise<Authority> | undefined;

/** One for all: making a CA takes longer than the rest. It is valid at the time of each site, that of recorded requests too. */
function siteAuthority(): Promise<Authority> {
  shared ??= createTestAuthority('site ca', 100 * 365 * 24, Date.UTC(2020, 0)).then(({ certificatePem, keyPem }) => ({
    name: 'ca',
    certificate: new Uint8Array(Buffer.from(certificatePem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')),
    intermediates: [],
    signer: embeddedSigner(keyPem),
  }));
  return shared;
}

interface Body {
  readonly decision?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly details?: { readonly causes?: readonly { readonly reason: string }[] };
  readonly status?: { readonly certificate?: string };
}

async function post(handler: HttpHandler, event: HttpEvent): Promise<Said> {
  const answer = await handler(event);
  const outcome = answer.headers['x-countersign-outcome'] ?? '';
  const { decision, reason = '', message = '', annotations = {}, details, status } = JSON.parse(answer.body) as Body;
  if (outcome === 'verdict') return { said: decision === 'approve' ? 'approve' : reason, message, annotations };
  if (outcome === 'issued')
    return { said: 'issued', message, certificatePem: Buffer.from(status?.certificate ?? '', 'base64').toString() };
  if (outcome === 'busy' || outcome === 'invalid') return { said: outcome, message };
  return { said: details?.causes?.[0]?.reason ?? outcome, message };
}

// ── What is posted ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface Asked {
  readonly node?: string;
  readonly key?: TestKey;
  /** By default a bootstrap token's user; `node` = the node itself. */
  readonly by?: 'bootstrap' | 'node' | { readonly username: string; readonly groups: readonly string[] };
  readonly signerName?: string;
  readonly uid?: string;
  /** Of the CSR: SANs, another subject … */
  readonly csr?: RequestSpec;
  /** Instead of everything that is in spec.request. */
  readonly request?: string;
  readonly usages?: readonly string[];
}

export interface CertificateSigningRequest extends JsonObject {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: JsonObject & { readonly request: string; readonly signerName: string };
}

/** The whole object as the API server stores it, approved. Attest looks at nothing else than pending ones do. */
export function requestFor(asked: Asked = {}): CertificateSigningRequest {
  const { node = 'worker-1', signerName = signers.client, by = 'bootstrap', key = newKey('P-256') } = asked;
  const requester =
    by === 'bootstrap'
      ? { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', 'system:authenticated'] }
      : by === 'node'
        ? { username: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] }
        : by;
  const usage = signerName.includes('serving') ? 'server auth' : 'client auth';
  const pem = asked.request ?? makeNodeRequest(node, key, asked.csr === undefined ? {} : { csr: asked.csr }).pem;
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', uid: asked.uid ?? randomUUID() },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName,
      usages: [...(asked.usages ?? ['digital signature', usage])],
      username: requester.username,
      groups: [...requester.groups],
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] },
  };
}

export interface Proved extends Asked {
  /** Besides or instead of what the request itself says. */
  readonly evidence?: Partial<NodeEvidenceOptions>;
}

/** What this instance's own agent makes, fresh. */
export function prove({ aws }: Pick<AwsPlatform, 'aws'>, instance: FakeInstance, asked: Proved = {}): NodeEvidence {
  const { node = 'worker-1', signerName = signers.client, key = newKey('P-256'), csr } = asked;
  return makeNodeEvidence(aws, instance.instanceId, {
    clusterName: 'prod',
    audience: audience('prod'),
    signerName,
    nodeName: node,
    key,
    providerId: `aws:///${instance.availabilityZone}/${instance.instanceId}`,
    ...(csr === undefined ? {} : { csr }),
    ...asked.evidence,
  });
}

export function provedRequest(
  platform: Pick<AwsPlatform, 'aws'>,
  instance: FakeInstance,
  asked: Proved = {},
): CertificateSigningRequest {
  return requestFor({ ...asked, request: prove(platform, instance, asked).request });
}
