/** The sign and attest handlers over embedded stores and keys, in place of Lambda, DynamoDB and KMS. */
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { ec2Endpoint, ec2Fleet, endorsementKeyEndpoint } from '../../adapters/aws/ec2.ts';
import { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import type { EmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import { createEmbeddedCa, temporaryCa } from '../../adapters/embedded/authority.ts';
import { issuersFirst } from '../../core/ca/make-ca-certificate.ts';
import { embeddedData } from '../../adapters/embedded/data.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { makeFolder } from '../../adapters/embedded/make-folder.ts';
import { openEmbeddedRevocations } from '../../adapters/embedded/revocations.ts';
import type { EmbeddedRevocations } from '../../adapters/embedded/revocations.ts';
import type { EmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { attestCall } from '../../adapters/lambda/attest-call.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { readRegionCertificates } from '../../adapters/aws/region-certificates.ts';
import { stsEndpoint } from '../../adapters/aws/sts.ts';
import type { AttestPorts } from '../../core/attest.ts';
import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import { hasSchedule } from '../../core/attestation/retirement/schedule.ts';
import { createProviders } from '../../core/attestation/providers.ts';
import type { ProviderPorts } from '../../core/attestation/providers.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { ClusterAttestation } from '../../core/configuration/model/attestation.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { version } from '../../core/version.ts';
import { createAttestHandler, maxCallBytes } from '../../lambdas/attest/handler.ts';
import { createSignHandler } from '../../lambdas/sign/handler.ts';
import { tooLarge } from '../../adapters/lambda/answers.ts';
import type { CallLogEntry } from '../../adapters/lambda/log.ts';
import { loopbackCaller } from './loopback-caller.ts';
import { serveHttp } from '../csr-api/node-http.ts';
import type { HttpService } from '../csr-api/node-http.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface SignServiceOptions {
  readonly clusters: readonly ClusterConfiguration[];
  /** The folder of ledgers and CAs. Without it they are in memory. */
  readonly dataFolder?: string;
  readonly log: (entry: CallLogEntry) => void;
  /** A stand-in for STS and EC2. Default: AWS. */
  readonly aws?: AwsPorts;
  /** A stand-in for Google. Default: none, and clusters that take evidence of Google's VMs are not served. */
  readonly google?: Pick<ProviderPorts, 'compute' | 'googleKeySet'>;
  /** Absent = the clock of this machine. */
  readonly now?: () => number;
  /** Wraps each CA; only for tests that need a faulty key. */
  readonly wrapAuthority?: (authority: Authority) => Authority;
}

export interface SignService {
  readonly handler: HttpHandler;
  readonly authority: (cluster: string, ca: string) => Authority;
  /** The records of a cluster's machines, and its locks. */
  readonly attestations: (cluster: string) => EmbeddedAttestations | undefined;
  /** Looks for terminated machines in each cluster, as the schedule of a deployed one does. Never rejects. */
  readonly look: () => Promise<void>;
  readonly close: () => void;
}

interface ClusterState {
  readonly configuration: ClusterConfiguration;
  readonly store: EmbeddedLedger;
  readonly authorities: ReadonlyMap<string, Authority>;
  readonly attestations: EmbeddedAttestations;
  readonly revocations: EmbeddedRevocations;
  /** Only for a cluster that demands attestation. */
  readonly providers?: AttestPorts['providers'];
}

export async function openSignService(options: SignServiceOptions): Promise<SignService> {
  const states = new Map<string, ClusterState>();
  const close = (): void => {
    for (const { store, attestations, revocations } of states.values()) {
      store.close();
      revocations.close();
      attestations.close();
    }
  };
  try {
    for (const cluster of options.clusters) states.set(cluster.name, await openCluster(cluster, options));
  } catch (error) {
    close();
    throw error;
  }
  // The handler asks only for configured clusters, and for CAs of their configuration.
  const state = (cluster: string): ClusterState => present(states.get(cluster), `cluster ${cluster}`);
  const authority = (cluster: string, ca: string): Authority => present(state(cluster).authorities.get(ca), `CA ${ca}`);
  const shared = {
    caller: loopbackCaller,
    cluster: (name: string) => states.get(name)?.configuration,
    now: options.now ?? Date.now,
    randomBytes,
    log: options.log,
  };
  const attest = createAttestHandler({
    ...shared,
    attestation: async (cluster) => {
      const { attestations, providers } = state(cluster);
      return { store: attestations.store, providers: present(providers, `attestation of ${cluster}`) };
    },
  });
  const sign = createSignHandler({
    ...shared,
    version,
    ledger: (cluster) => state(cluster).store.ledger,
    crls: (cluster) => state(cluster).revocations.crls,
    locks: (cluster) => state(cluster).attestations.store,
    authority: async (cluster, ca) => authority(cluster, ca),
    attestations: (cluster) => {
      const { attestations, providers } = state(cluster);
      if (providers === undefined) return undefined;
      const ask = async (object: JsonObject): Promise<void> => void (await attest.call(attestCall(cluster, object)));
      return { ...attestations.store, attest: ask };
    },
  });
  // One server serves both functions, like an HTTP API.
  const handler: HttpHandler = (event) => (/\/attest(\/look)?$/.test(event.rawPath) ? attest.http(event) : sign(event));
  async function look(): Promise<void> {
    for (const { configuration } of states.values())
      if (hasSchedule(configuration)) await attest.scheduledLook(configuration.name);
  }
  return { handler, look, authority, attestations: (cluster) => states.get(cluster)?.attestations, close };
}

/** Serves both handlers over HTTP on loopback; port 0 selects a free port. */
export function serveSignService(service: Pick<SignService, 'handler'>, port: number): Promise<HttpService> {
  return serveHttp(service.handler, {
    port,
    maxBodyBytes: maxCallBytes,
    tooLarge: tooLarge(),
    onError: (error) => process.stderr.write(`error: ${errorMessage(error)}\n`),
  });
}

async function openCluster(
  cluster: ClusterConfiguration,
  { dataFolder, wrapAuthority, aws, google }: SignServiceOptions,
): Promise<ClusterState> {
  const data = dataFolder === undefined ? undefined : embeddedData(dataFolder, cluster.name);
  const authorities = new Map<string, Authority>();
  for (const ca of issuersFirst(cluster.cas)) {
    const origin = { now: Date.now(), randomBytes };
    const authority =
      data === undefined
        ? await temporaryCa(ca, origin, ca.kind === 'issued' ? authorities.get(ca.issuedBy) : undefined)
        : (await createEmbeddedCa(data.caFolder, ca, origin)).authority;
    authorities.set(ca.name, wrapAuthority?.(authority) ?? authority);
  }
  if (data !== undefined) makeFolder(dirname(data.ledgerFile));
  const store = openEmbeddedLedger(data?.ledgerFile ?? ':memory:');
  const attestations = openEmbeddedAttestations(data?.attestationsFile ?? ':memory:');
  const revocations = openEmbeddedRevocations(data?.revocationsFile ?? ':memory:');
  const { challengeKey, store: records } = attestations;
  const tpm = { challengeKey, randomBytes, findMachine: (machine: string) => records.findMachine(machine) };
  return {
    configuration: cluster,
    store,
    authorities,
    attestations,
    revocations,
    ...(cluster.attestation === undefined
      ? {}
      : { providers: createProviders(cluster.attestation, { ...awsPorts(cluster.attestation, aws), ...google, tpm }) }),
  };
}

function awsPorts({ aws: settings }: ClusterAttestation, standIn: AwsPorts | undefined): { readonly aws?: AwsPorts } {
  if (settings === undefined) return {};
  if (standIn !== undefined) return { aws: standIn };
  // The SDK's own clients read AWS_ENDPOINT_URL_EC2 themselves.
  const endpoint = process.env['AWS_ENDPOINT_URL_STS'];
  const sts = stsEndpoint(endpoint === undefined ? {} : { endpoint });
  const regionCertificates = readRegionCertificates(settings);
  const ec2 = { ec2: ec2Endpoint(), fleet: ec2Fleet(), endorsementKeys: endorsementKeyEndpoint() };
  return { aws: { sts, ...ec2, regionCertificates } };
}

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`no ${what}`);
  return value;
}
