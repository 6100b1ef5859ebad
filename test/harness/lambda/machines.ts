/** The machines of the functions that run one by one: a fake STS and EC2 beside the emulated AWS, which knows neither so well. */
import { randomUUID } from 'node:crypto';
import { emulatedRegion } from '../aws/emulator.ts';
import { startFakeEc2 } from '../fake-aws/ec2.ts';
import { makeNodeEvidence, type NodeEvidenceOptions } from '../fake-aws/machine/node-evidence.ts';
import { regionCa } from '../fake-aws/machine/region-ca.ts';
import { startFakeSts } from '../fake-aws/sts.ts';
import { createFakeAws } from '../fake-aws/world.ts';

export const account = '000000000000';
export const nodeSigner = 'kubernetes.io/kube-apiserver-client-kubelet';

const aws = createFakeAws();

/** What countersign.yaml says of a cluster that its instances may join. */
export function machineRules(cluster: string): object {
  return {
    aws: {
      accounts: { [account]: {} },
      regions: [emulatedRegion],
      tags: { [`kubernetes.io/cluster/${cluster}`]: 'owned' },
      nodeName: ['tag:Name'],
      certificates: { [emulatedRegion]: [regionCa(emulatedRegion).certificatePem] },
    },
  };
}

export interface Machines {
  /** For a function: the rest of AWS is elsewhere. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** `credentials`: those of the function, which may look at instances. */
export async function startMachines(credentials: {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}): Promise<Machines> {
  const { principal } = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);
  aws.addCredential({ ...credentials, principal });
  const [sts, ec2] = [await startFakeSts({ aws }), await startFakeEc2({ aws })];
  return {
    environment: { AWS_ENDPOINT_URL_STS: sts.url, AWS_ENDPOINT_URL_EC2: ec2.url },
    async stop() {
      await Promise.all([sts.close(), ec2.close()]);
    },
  };
}

/** The request of a new instance for its node's first certificate, as a bootstrap token posts it; pending. */
export function nodeRequest(cluster: string, change: Partial<NodeEvidenceOptions> = {}) {
  const nodeName = `node-${randomUUID()}`;
  const { instanceId, availabilityZone } = aws.launch({
    account,
    region: emulatedRegion,
    tags: { [`kubernetes.io/cluster/${cluster}`]: 'owned', Name: nodeName },
  });
  const evidence = makeNodeEvidence(aws, instanceId, {
    clusterName: cluster,
    audience: `${account}/${emulatedRegion}/${cluster}`,
    signerName: nodeSigner,
    nodeName,
    providerId: `aws:///${availabilityZone}/${instanceId}`,
    ...change,
  });
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `csr-${nodeName}`, uid: randomUUID() },
    spec: {
      request: Buffer.from(evidence.request).toString('base64'),
      signerName: nodeSigner,
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
    status: {},
  };
  return { object, nodeName, identity: `aws#aws/${account}/${emulatedRegion}/${instanceId}` };
}
