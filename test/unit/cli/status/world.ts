/** A healthy cluster for `countersign status` and `doctor`: what each test changes is the fault that it is about. */
import { defaultCluster, parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { rulesFingerprint } from '../../../../core/configuration/rules-fingerprint.ts';
import type { HealthAnswer, HealthCall, LogSearch, OpenTrace, SeenTable } from '../../../../cli/runtime/io.ts';
import { version } from '../../../../core/version.ts';
import type { Answers } from '../../../harness/kubernetes/answering-server.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { now } from '../run.ts';

export const [account, region] = ['999900001111', 'eu-central-1'];

export const yaml = `version: 1
clusters:
  prod:
    cas: { ca: { subject: { commonName: prod CA } } }
    profiles: { kubernetes.io/kubelet-serving: { maxTtl: 30d } }
    access: { iam: { principals: ['arn:aws:iam::444455556666:role/prod-watch-relay'] } }
    aws: { account: '${account}', region: ${region} }
`;

export function clusterOf(text: string): ClusterConfiguration {
  const parsed = parseConfiguration(text, 'countersign.yaml');
  return (parsed.ok ? parsed.value.configuration.clusters.get('prod') : undefined) ?? defaultCluster('prod');
}

export const outputs: Readonly<Record<string, string>> = {
  SignUrl: `https://abcde12345.execute-api.${region}.amazonaws.com/v1/clusters/prod`,
  CallerRoleArn: `arn:aws:iam::${account}:role/countersign-prod-caller`,
  CertificatesTable: 'prod-certificates',
  AttestationsTable: 'prod-attestations',
  SignLogGroup: 'sign',
};

export const healthy: HealthAnswer = {
  status: 200,
  milliseconds: 42,
  outcome: 'ok',
  body: JSON.stringify({
    version,
    cluster: 'prod',
    rulesSha256: rulesFingerprint(clusterOf(yaml)),
    cas: [{ name: 'ca', fingerprintSha256: '00', notAfter: new Date(now + 400 * 86_400_000).toISOString() }],
  }),
};

const day = 86_400_000;

export async function caAnswer(daysLeft = 400): Promise<object> {
  const { certificatePem } = await createTestAuthority('prod CA');
  const ca = {
    ok: true,
    name: 'ca',
    created: false,
    certificatePem,
    keyId: 'arn',
    signatureAlgorithm: 'ECDSA',
    pathEnds: now + daysLeft * day,
  };
  return { cluster: 'prod', cas: [ca], crlEnds: {} };
}

export const table: SeenTable = { exists: true, status: 'ACTIVE', deletionProtection: true, pointInTimeRecovery: true };

export type LogLine = { readonly of: 'sign' | 'attest'; readonly at: number; readonly text: string };

/** The part of the logs' search that status uses. */
export function traceOf(lines: readonly LogLine[], searches: LogSearch[] = []): OpenTrace {
  const searchLog = async (search: LogSearch) => {
    searches.push(search);
    if (search.of === 'attest') return undefined;
    return { lines: lines.filter(({ of, at }) => of === search.of && at >= search.from) };
  };
  return { searchLog, close: () => undefined } as unknown as OpenTrace;
}

export interface World {
  readonly calls: HealthCall[];
}

/** Everything answers, and everything is well. */
export function healthyWorld(calls: HealthCall[] = []) {
  return {
    stackOutputs: async () => outputs,
    readHealth: async (call: HealthCall): Promise<HealthAnswer> => {
      calls.push(call);
      return healthy;
    },
    lookAtTable: async () => table,
    callFunction: async () => caAnswer(),
    openTrace: async () => traceOf([]),
  };
}

export const deployments = 'GET /apis/apps/v1/deployments';
export const lease = 'GET /apis/coordination.k8s.io/v1/namespaces/countersign-system/leases/countersign-watch-relay';
export const events = 'GET /api/v1/namespaces/default/events';

export const relay = {
  metadata: {
    name: 'countersign-watch-relay',
    namespace: 'countersign-system',
    generation: 1,
    labels: { 'app.kubernetes.io/version': version },
  },
  spec: {
    replicas: 2,
    selector: {},
    template: {
      spec: {
        serviceAccountName: 'countersign-watch-relay',
        containers: [{ name: 'watch-relay', args: [], env: [{ name: 'COUNTERSIGN_CLUSTER', value: 'prod' }] }],
      },
    },
  },
  status: { observedGeneration: 1, readyReplicas: 2, conditions: [{ type: 'Available', status: 'True' }] },
};

const renewed = (at: number): object => ({
  spec: { holderIdentity: 'relay-a', renewTime: new Date(at).toISOString() },
});

export const inCluster: Answers = {
  [deployments]: [200, { items: [relay], metadata: {} }],
  [lease]: [200, renewed(now - 1_000)],
  [events]: [200, { items: [], metadata: {} }],
};

export const staleLease = renewed(now - 3 * 3_600_000);
