/** Helm values of deploy/chart for the relay of a deployed cluster. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../../core/configuration/model/deployment.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

/** Those of `auth.aws.credentials` for which the chart needs nothing else that no output has. */
export const credentialKinds = ['webIdentity', 'podIdentity', 'instanceRole'] as const;

export interface ValuesChoice {
  readonly auth?: 'aws' | 'token';
  readonly credentials: (typeof credentialKinds)[number];
  /** The role of the relay, for webIdentity. */
  readonly roleArn?: string;
  readonly image?: Image;
}

export interface Image {
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

export interface DeployedCluster {
  readonly cluster: string;
  /** Of its service stack. */
  readonly outputs: Readonly<Record<string, string>>;
  /** countersign.yaml at hand, whole. */
  readonly file?: {
    readonly path: string;
    readonly text: string;
    readonly cluster: ClusterConfiguration;
    readonly deployment: DeploymentConfiguration;
  };
}

/** Throws CommandFailure for what only the operator knows. The names are those of deploy/chart/values.yaml. */
export function relayValues(deployed: DeployedCluster, choice: ValuesChoice): object {
  const method = methodOf(deployed, choice);
  const { cluster, outputs } = deployed;
  const [url, attestUrl] = [outputs[urlOutputs[method]], outputs['AttestUrl']];
  return {
    ...(choice.image === undefined ? {} : { image: choice.image }),
    endpoint: { url, ...(method === 'token' || attestUrl === undefined ? {} : { attestUrl }), cluster },
    ...(method === 'token' ? ofToken(deployed) : ofRole(deployed, choice)),
    ...signersOf(deployed),
  };
}

const urlOutputs = { aws: 'SignUrl', token: 'JwtSignUrl' } as const;

function methodOf({ cluster, outputs }: DeployedCluster, { auth }: ValuesChoice): 'aws' | 'token' {
  const served = (['aws', 'token'] as const).filter((method) => outputs[urlOutputs[method]] !== undefined);
  const [only, second] = auth === undefined ? served : served.filter((method) => method === auth);
  if (only === undefined)
    throw new CommandFailure(
      exitCodes.configuration,
      auth === undefined
        ? `the stack of ${cluster} has no output ${Object.values(urlOutputs).join(' and no output ')}`
        : `the stack of ${cluster} has no output ${urlOutputs[auth]}: access of countersign.yaml has no ${auth === 'aws' ? 'iam' : 'jwt'}`,
      'npm run cdk -- deploy makes it',
    );
  if (second === undefined) return only;
  throw new CommandFailure(
    exitCodes.usage,
    `cluster ${cluster} has an endpoint for roles and one for tokens`,
    '--auth aws or --auth token; docs/deploy.md, “Which way in?”',
  );
}

function ofToken({ cluster, file }: DeployedCluster): object {
  const audience = file?.deployment.access.jwt?.audience;
  if (audience === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `no output of the stack has the audience of the tokens of ${cluster}`,
      '--config names the countersign.yaml, whose access.jwt has it',
    );
  const { name } = admittedAccount(file?.deployment);
  return {
    auth: { method: 'token', token: { audience } },
    ...(name === chartName ? {} : { serviceAccount: { name } }),
  };
}

export const chartName = 'countersign-watch-relay';

/** The service account whose tokens the endpoint accepts; the chart's own if tokens are not accepted. */
export function admittedAccount(deployment: DeploymentConfiguration | undefined): {
  readonly namespace: string;
  readonly name: string;
} {
  const [, namespace = 'countersign-system', name = chartName] =
    /^system:serviceaccount:([^:]+):([^:]+)$/.exec(deployment?.access.jwt?.subjects[0] ?? '') ?? [];
  return { namespace, name };
}

function ofRole({ outputs, file, cluster }: DeployedCluster, { credentials, roleArn }: ValuesChoice): object {
  const aws = { callerRoleArn: outputs['CallerRoleArn'], region: regionOf(outputs, cluster), credentials };
  const auth = { method: 'aws', aws };
  if (credentials === 'webIdentity') return { auth: { ...auth, aws: { ...aws, roleArn: relayRole(file, roleArn) } } };
  if (roleArn !== undefined)
    throw new CommandFailure(exitCodes.usage, `--role-arn is for --credentials webIdentity, not ${credentials}`);
  if (credentials === 'podIdentity') return { auth };
  // Ordinary nodes have another role; pods do not reach the metadata of the instance.
  return { auth, hostNetwork: true, nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } };
}

/** The ARN of a key has the region of the stack, which no other output tells for a domain of one's own. */
function regionOf({ CaKeyArns: arns = '' }: DeployedCluster['outputs'], cluster: string): string {
  const region = arns.split(' ')[0]?.split(':')[3] ?? '';
  if (region !== '') return region;
  throw new CommandFailure(
    exitCodes.configuration,
    `the stack of ${cluster} has no output CaKeyArns: an earlier version deployed it`,
    'npm run cdk -- deploy makes it',
  );
}

function relayRole(file: DeployedCluster['file'], given: string | undefined): string {
  const principals = file?.deployment.access.iam?.principals ?? [];
  const roles = principals.filter((arn) => /^arn:[\w-]+:iam::\d{12}:role\//.test(arn));
  // An account's root among the principals lets each of its roles in that IAM permits to.
  const anyRole = file === undefined || roles.length < principals.length;
  if (given !== undefined) {
    if (anyRole || roles.includes(given)) return given;
    throw new CommandFailure(
      exitCodes.refused,
      `access.iam.principals of ${file.path} does not name ${given}, so STS would refuse the relay the caller role`,
      `it names ${roles.join(', ')}`,
    );
  }
  const [only, second] = roles;
  if (only !== undefined && second === undefined) return only;
  throw new CommandFailure(
    exitCodes.usage,
    'which role do the tokens of the relay assume?',
    `--role-arn names it${roles.length === 0 ? '' : `, one of ${roles.join(', ')}`}; or --credentials podIdentity or instanceRole`,
  );
}

/** Without a file the chart's own default of signers holds. */
function signersOf({ file }: DeployedCluster): object {
  if (file === undefined) return {};
  const { profiles, approval } = file.cluster;
  const names = [...profiles.keys()];
  // The relay reads both from the file, and its rights in the cluster follow from it.
  const needsFile = names.some((name) => approval.get(name) === 'approve' || profiles.get(name)?.attestation);
  const { attestation } = file.cluster;
  const clusterApi = attestation?.clusterApi === undefined ? {} : { clusterApi: { enabled: true } };
  return needsFile ? { ...clusterApi, configuration: file.text } : { signerNames: names };
}
