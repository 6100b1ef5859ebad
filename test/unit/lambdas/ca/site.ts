/** The ca function with keys and a table in memory, for a cluster that a test writes. */
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import { randomBytes } from 'node:crypto';
import { embeddedSigner, generateKey, publicKeyInfo } from '../../../../adapters/embedded/signer.ts';
import type { ResourceResponse } from '../../../../adapters/aws/cloudformation-response.ts';
import type { CaKey, CaRecord } from '../../../../core/ca/authority.ts';
import type { SignatureRecord } from '../../../../core/ports/signature-log.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { createCaHandler } from '../../../../lambdas/ca/handler.ts';
import type { CaHandler } from '../../../../lambdas/ca/handler.ts';
import type { OperatorLogEntry } from '../../../../adapters/lambda/operator-call.ts';
import type { CaPorts } from '../../../../lambdas/ca/actions/ports.ts';

export const siteNow = Date.parse('2026-06-01T12:00:00Z');

export interface CaSite {
  readonly cluster: ClusterConfiguration;
  readonly ports: CaPorts;
  readonly records: Map<string, CaRecord>;
  /** A test may replace a key, for example by one that awaits its material. */
  readonly keys: Map<string, CaKey>;
  readonly handler: CaHandler;
  /** By id. */
  readonly signatures: ReadonlyMap<string, SignatureRecord>;
  readonly responses: ResourceResponse[];
  readonly log: OperatorLogEntry[];
}

/** `cas`: the lines below `cas:` of countersign.yaml, as a flow map. `ca`: who signs for the one profile. */
export function createSite(cas: string, ca: string): Promise<CaSite> {
  return createSiteOf(
    `version: 1\nclusters: {prod: {cas: ${cas}, profiles: {kubernetes.io/kubelet-serving: {ca: ${ca}}}}}\n`,
  );
}

/** For cluster prod of a countersign.yaml. */
export async function createSiteOf(yaml: string): Promise<CaSite> {
  const parsed = parseConfiguration(yaml, 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join('; '));
  const cluster = parsed.value.configuration.clusters.get('prod')!;
  const records = new Map<string, CaRecord>();
  const keys = new Map<string, CaKey>();
  const signatures = new Map<string, SignatureRecord>();
  for (const { name, keySpec } of cluster.cas.values()) keys.set(name, caKeyOf(await generateKey(keySpec)));
  const { revocations, crls } = openEmbeddedRevocations(':memory:');
  const ports: CaPorts = {
    revocations,
    crls,
    signatures: { put: async (record) => void signatures.set(record.id, record) },
    cluster: 'prod',
    cas: cluster.cas,
    profiles: cluster.profiles,
    key: (name) => keys.get(name)!,
    store: {
      find: async (name) => records.get(name),
      add: async (record) => {
        if (records.has(record.name)) return false;
        records.set(record.name, record);
        return true;
      },
    },
    origin: () => ({ now: siteNow, randomBytes }),
  };
  const responses: ResourceResponse[] = [];
  const log: OperatorLogEntry[] = [];
  const handler = createCaHandler({
    connect: () => ports,
    respond: async (_, response) => void responses.push(response),
    wait: async () => {},
    log: (entry) => log.push(entry),
  });
  return { cluster, ports, records, keys, signatures, handler, responses, log };
}

export function caKeyOf(privateKey: Awaited<ReturnType<typeof generateKey>>): CaKey {
  const { keyId, algorithm } = embeddedSigner(privateKey);
  return {
    keyId,
    publicKey: async () => ({ spki: publicKeyInfo(privateKey), algorithms: [algorithm] }),
    signer: (wanted) => embeddedSigner(privateKey, wanted),
  };
}

export const deployEvent = {
  RequestType: 'Create',
  ResponseURL: 'https://bucket.example/secret',
  StackId: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/countersign-prod/1',
  RequestId: 'r-1',
  LogicalResourceId: 'Cas',
};
