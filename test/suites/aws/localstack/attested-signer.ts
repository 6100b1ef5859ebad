/**
 * A cluster with attestation as `cdk deploy` makes it: deployed functions and their own tables. Machines, STS and EC2 are
 * the strict fakes, reached by the addresses in the functions' environment, and the region's certificate is one that the
 * operator supplies.
 */
import { startAwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { deployOnLocalStack, type Deployment } from '../../../harness/aws/deployment.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { regionCa } from '../../../harness/fake-aws/machine/region-ca.ts';
import { readTrustBundle, type CountedSigner } from '../../control-plane/end-to-end/kms-counting.ts';

export const [account, region] = ['000000000000', 'eu-central-1'];
export const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
export const servingName = 'cluster.x-k8s.io/kubelet-serving-aws';

/** The signers of Kubernetes itself demand no proof yet: what must hold for them without one must hold here too. */
const withAttestation = (configuration: string): string =>
  configuration
    .replace(
      'kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d }',
      `kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d, attestation: { providers: [aws], mode: audit } }
      ${signerName}: { ca: ca, maxTtl: 1d }
      ${servingName}: { ca: ca, maxTtl: 1d }`,
    )
    .replace(
      '    frontDoor:',
      `    approval: { ${signerName}: approve, ${servingName}: approve }
    attestation:
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/demo: owned }
        nodeName: ['tag:Name']
        certificates: { ${region}: [${JSON.stringify(regionCa(region).certificatePem)}] }
    frontDoor:`,
    );

export type AttestedSigner = CountedSigner & Deployment & { readonly platform: AwsPlatform };

export async function startAttestedSigner(): Promise<AttestedSigner> {
  const platform = await startAwsPlatform();
  // The functions' own account, whose role may see instances. LocalStack checks no credentials.
  const { accessKeyId, secretAccessKey } = platform.aws.createUser(account, 'functions', ['ec2:DescribeInstances']);
  const ec2 = await startFakeEc2({ aws: platform.aws });
  try {
    const deployment = await deployOnLocalStack({
      change: withAttestation,
      functions: {
        AWS_ENDPOINT_URL_STS: platform.sts.url,
        AWS_ENDPOINT_URL_EC2: ec2.url,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_SESSION_TOKEN: '',
      },
    });
    return {
      ...deployment,
      platform,
      relayArgs: ['--config', deployment.configurationFile, '--attest-url', deployment.attestUrl],
      caPem: () => readTrustBundle(deployment),
      async stop() {
        await deployment.stop();
        await ec2.close();
        await platform.close();
      },
    };
  } catch (error) {
    await ec2.close();
    await platform.close();
    throw error;
  }
}
