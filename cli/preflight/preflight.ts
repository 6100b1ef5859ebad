/** All checks, place by place. A place is an account and a region; it has one login. */
import { partitionOf } from '../../core/attestation/aws/partition.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import type { AccountView } from '../runtime/account-view.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { checkBootstrap, checkIdentity, checkRegion } from './account-checks.ts';
import type { Check, PlannedCluster, Site } from './check.ts';
import { checkPrincipals } from './principal-checks.ts';
import { checkConcurrency, checkSignatures } from './quota-checks.ts';
import { checkStacks } from './stack-checks.ts';

export interface PlaceReport {
  readonly account: string;
  readonly region: string;
  readonly clusters: readonly string[];
  readonly checks: readonly Check[];
}

/** In the order of the report. */
const siteChecks = [
  checkRegion,
  checkBootstrap,
  checkConcurrency,
  checkSignatures,
  checkPrincipals,
  checkStacks,
] as const satisfies readonly ((site: Site) => Promise<Check[]>)[];

export async function preflight(
  clusters: readonly PlannedCluster[],
  connectAccount: Io['connectAccount'],
): Promise<readonly PlaceReport[]> {
  const places = Map.groupBy(clusters, ({ deployment: { account = '', region = '' } }) => `${account} ${region}`);
  const reports: PlaceReport[] = [];
  for (const here of places.values()) {
    const view = await connectAccount(here[0]?.deployment.region);
    try {
      reports.push(await checkPlace(view, here));
    } finally {
      view.close();
    }
  }
  return reports;
}

async function checkPlace(view: AccountView, clusters: readonly PlannedCluster[]): Promise<PlaceReport> {
  const { region, arn } = await loginOf(view);
  const partition = partitionOf(region)?.name;
  if (partition === undefined)
    throw new CommandFailure(exitCodes.configuration, `region ${region} is of no partition that Countersign knows`);
  const account = arn.split(':')[4] ?? '';
  const wanted = clusters[0]?.deployment.account;
  const identity = checkIdentity(arn, wanted, { region, partition });
  const report = { account: wanted ?? account, region, clusters: clusters.map(({ cluster: { name } }) => name) };
  // Another account's answers would be about other stacks, roles and quotas.
  if (identity.result === 'fail') return { ...report, checks: [identity] };
  const site = { view, account, region, partition, clusters };
  const rows = await Promise.all(siteChecks.map((check) => check(site)));
  return { ...report, checks: [identity, ...rows.flat()] };
}

/** Throws CommandFailure: without a login nothing can be checked. */
async function loginOf(view: AccountView): Promise<{ readonly region: string; readonly arn: string }> {
  try {
    return { region: await view.region(), arn: await view.callerArn() };
  } catch (error) {
    const { code, message, hint } = awsFailure('STS', error);
    // What STS of a region answers that the account has not enabled.
    const disabled = error instanceof Error && /^(InvalidClientTokenId|UnrecognizedClientException)/.test(error.name);
    throw new CommandFailure(
      code,
      message,
      disabled ? 'log in again; or the region is disabled: aws account list-regions, aws account enable-region' : hint,
    );
  }
}
