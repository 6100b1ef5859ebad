/** The part of a cluster that can be deleted and deployed again at any time: functions, endpoints, alarms. */
import { Arn, Aws, Stack } from 'aws-cdk-lib';
import type { IDomainName } from 'aws-cdk-lib/aws-apigatewayv2';
import type { Alarm, Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch';
import { Grant, Role } from 'aws-cdk-lib/aws-iam';
import type { IGrantable, IRole, ManagedPolicy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { callerRoleName } from '../core/configuration/resolve/deployment.ts';
import { createAttest, createOperatorPolicy, operatorStatements } from './attest.ts';
import { ownSources } from './functions.ts';
import type { Service, ServiceFunction, Sources } from './functions.ts';
import { caStatusInterval, createAlarms } from './observability/alarms.ts';
import { createDashboard } from './observability/dashboard.ts';
import { countLines } from './observability/log-metrics.ts';
import { caDaysLeft, metricNames } from './observability/metric-names.ts';
import { clusterMetric, countOnce } from './observability/metrics.ts';
import { callersOf, createCa, createCas, createFrontDoor, createKubeadm, createSign } from './services.ts';
import type { SigningState } from './signing-state.ts';

/** Properties of a `SigningCluster`. */
export interface SigningClusterProps {
  /** Keys and tables of the cluster, and its configuration. In another stack of the same account and region. */
  readonly state: SigningState;

  /** @internal Tests give other functions. */
  readonly sources?: Sources;
}

/**
 * The service of a cluster: functions, endpoints, alarms. It holds nothing that cannot be made again: its stack can be
 * deleted and deployed again while the `SigningState` stays.
 *
 * Functions and the caller role have the name of the cluster in their names, so an account has one cluster of a name.
 */
export class SigningCluster extends Construct {
  /**
   * The caller role of a cluster of another account, by its fixed name. Call `grantAssumeRole` of it for the role of the
   * relay.
   *
   * @param account account of the `SigningCluster`
   * @param cluster name of the cluster
   */
  static callerRoleOf(scope: Construct, id: string, account: string, cluster: string): IRole {
    const resourceName = callerRoleName(cluster);
    const arn = Arn.format({
      partition: Aws.PARTITION,
      service: 'iam',
      region: '',
      account,
      resource: 'role',
      resourceName,
    });
    return Role.fromRoleArn(scope, id, arn);
  }

  /** What relays with AWS credentials get as `COUNTERSIGN_URL`. Undefined without `access.iam`. */
  readonly signUrl: string | undefined;

  /** What relays get as `COUNTERSIGN_ATTEST_URL`. Undefined without attestation, and for an HTTP API, where it is `signUrl`. */
  readonly attestUrl: string | undefined;

  /** What relays with a service account token get as `COUNTERSIGN_URL`. Undefined without `access.jwt`. */
  readonly jwtSignUrl: string | undefined;

  /**
   * The DNS names of `access.iam.domain` and `access.jwt.domain`, by authentication method. The DNS record of each is an alias or CNAME of its
   * `regionalDomainName`, and yours to make.
   */
  readonly domains: ReadonlyMap<'iam' | 'jwt', IDomainName>;

  /** The role that relays assume, which trusts `access.iam.principals`. Undefined without `access.iam`. */
  readonly callerRole: Role | undefined;

  /** The policy of operators who run `countersign lock`, `tofu`, `machines`, `trace` and `status`. */
  readonly operatorPolicy: ManagedPolicy;

  /** The functions: `sign` and `ca`, with attestation `attest`, with `access.jwt` `authorizer`, with `kubeadm` `kubeadm`. */
  readonly functions: ReadonlyMap<Service, LambdaFunction>;

  /** The logs of the functions, which are retained. */
  readonly logGroups: ReadonlyMap<Service, ILogGroup>;

  /** The alarms, which notify `alarms.topics`. */
  readonly alarms: readonly Alarm[];

  /** The keys and tables of this cluster. */
  readonly state: SigningState;

  readonly #services: ReadonlyMap<Service, ServiceFunction>;
  readonly #operatorStatements: readonly PolicyStatement[];

  constructor(scope: Construct, id: string, { state, sources = ownSources }: SigningClusterProps) {
    super(scope, id);
    this.state = state;
    if (Stack.of(state) === Stack.of(this))
      throw new Error(
        `cluster ${state.clusterName}: SigningCluster and its SigningState are in the same stack. Without that stack the key policies trust no role; give the state a stack of its own`,
      );
    const { cluster, deployment } = state.parsed;
    const options = { cluster, deployment, state, sources };
    const attest = createAttest(this, options, state, callersOf(options));
    const sign = createSign(this, options, attest);
    const ca = createCa(this, options);
    const kubeadm = createKubeadm(this, options);
    const { authorizer, apis, ...ways } = createFrontDoor(this, { sign, attest }, options);
    this.callerRole = ways.callerRole;
    this.signUrl = ways.signUrl;
    this.attestUrl = ways.attestUrl;
    this.jwtSignUrl = ways.jwtSignUrl;
    this.domains = new Map([...apis].flatMap(([way, { domain }]) => (domain === undefined ? [] : [[way, domain]])));
    const functions = new Map<Service, ServiceFunction>([
      ['sign', sign],
      ...(attest === undefined ? [] : [['attest', attest] as const]),
      ...(authorizer === undefined ? [] : [['authorizer', authorizer] as const]),
      ['ca', ca],
      ...(kubeadm === undefined ? [] : [['kubeadm', kubeadm] as const]),
    ]);
    this.#services = functions;
    this.functions = new Map([...functions].map(([service, made]) => [service, made.function]));
    this.logGroups = new Map([...functions].map(([service, made]) => [service, made.logGroup]));
    const watched = { functions, apis, functionUrls: deployment.frontDoor === 'functionUrl' };
    // The ca function logs the days left when the stack is deployed. The filters exist by then.
    createCas(this, ca, cluster).node.addDependency(...countLines(this, cluster, watched));
    this.alarms = createAlarms(this, { cluster, alarms: deployment.alarms, ...watched });
    const tables = { certificates: state.certificates.tableName, attestations: state.attestations.tableName };
    const retires = cluster.attestation?.retireTerminated === true;
    if (deployment.dashboard)
      createDashboard(this, { cluster: cluster.name, alarms: this.alarms, tables, retires, ...watched });
    const logs = [sign, ...(attest === undefined ? [] : [attest])].map(({ logGroup }) => logGroup);
    this.#operatorStatements = operatorStatements(this, cluster, {
      attestations: state.attestations,
      certificates: state.certificates,
      logs,
    });
    this.operatorPolicy = createOperatorPolicy(this, cluster, this.#operatorStatements);
  }

  /**
   * Lets a principal assume the caller role, as relays do. The role trusts `access.iam.principals` only, so the principal must be
   * among them too.
   */
  grantCall(grantee: IGrantable): Grant {
    if (this.callerRole === undefined)
      throw new Error(`cluster ${this.state.clusterName}: access.iam: is not given, so there is no caller role`);
    return this.callerRole.grantAssumeRole(grantee.grantPrincipal);
  }

  /** Lets a principal run `countersign lock`, `tofu`, `machines`, `trace` and `status`: the statements of `operatorPolicy`. */
  grantOperate(grantee: IGrantable): Grant {
    const [first, ...others] = this.#operatorStatements.map(({ actions, resources: resourceArns, conditions }) =>
      Grant.addToPrincipal({
        grantee,
        actions,
        resourceArns,
        conditions: conditions as Record<string, Record<string, unknown>>,
      }),
    );
    if (first === undefined) throw new Error('the operator policy has no statement');
    return others.reduce((all, grant) => all.combine(grant), first);
  }

  /** Lets a principal invoke the ca function: `countersign ca …` and `countersign cert revoke`. */
  grantCa(grantee: IGrantable): Grant {
    return this.#service('ca').function.grantInvoke(grantee);
  }

  /**
   * Lets a principal invoke the kubeadm function: `countersign kubeadm …`, which signs `admin.conf`. So the principal may become
   * administrator of the cluster. Only with `kubeadm`.
   */
  grantKubeadm(grantee: IGrantable): Grant {
    return this.#service('kubeadm').function.grantInvoke(grantee);
  }

  /**
   * Certificates issued, each counted once. The first call makes a metric filter; CloudWatch bills a custom metric for the hours
   * with certificates.
   *
   * @default - sum over five minutes
   */
  metricIssued(options?: MetricOptions): Metric {
    const each = new Map([['sign', this.#service('sign').logGroup]]);
    const pattern = '$.outcome = "issued" && $.repeat IS FALSE';
    countOnce(this, this.state.clusterName, { metricName: 'Issued', pattern, each });
    return clusterMetric(this.state.clusterName, 'Issued', options);
  }

  /**
   * Refusals by sign and attest, for any reason, each answer counted. The first call makes a metric filter for each function.
   *
   * @default - sum over five minutes
   */
  metricRefused(options?: MetricOptions): Metric {
    const served = [...this.#services].filter(([service]) => service === 'sign' || service === 'attest');
    const each = new Map(served.map(([service, { logGroup }]) => [service, logGroup]));
    countOnce(this, this.state.clusterName, { metricName: 'Refused', pattern: '$.trouble = "refused-*"', each });
    return clusterMetric(this.state.clusterName, 'Refused', options);
  }

  /**
   * Refusals that no correct client causes, and refused callers: what the alarm `unexpected-refusals` counts.
   *
   * @default - sum over five minutes
   */
  metricUnexpectedRefusals(options?: MetricOptions): Metric {
    return clusterMetric(this.state.clusterName, metricNames['unexpected-refusals'], options);
  }

  /**
   * Faults that do not pass without an operator: what the alarm `faults` counts.
   *
   * @default - sum over five minutes
   */
  metricFaults(options?: MetricOptions): Metric {
    return clusterMetric(this.state.clusterName, metricNames.faults, options);
  }

  /**
   * Calls without an answer that ends their request, and 5xx of an HTTP API: what the alarm `interruptions` counts.
   *
   * @default - sum over five minutes
   */
  metricInterruptions(options?: MetricOptions): Metric {
    return clusterMetric(this.state.clusterName, metricNames.interruptions, options);
  }

  /**
   * Days that the CA has left that ends first.
   *
   * @default - minimum over six hours
   */
  metricCaDaysLeft(options?: MetricOptions): Metric {
    const { clusterName } = this.state;
    return clusterMetric(clusterName, caDaysLeft, { statistic: 'Minimum', period: caStatusInterval, ...options });
  }

  #service(name: Service): ServiceFunction {
    const found = this.#services.get(name);
    if (found === undefined) throw new Error(`cluster ${this.state.clusterName} has no ${name} function`);
    return found;
  }
}
