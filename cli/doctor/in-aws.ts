/** The login to AWS: whose it is, whether it is of the account and region of the file, and whether the stacks are there. */
import { partitionOf } from '../../core/attestation/aws/partition.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import type { CheckRow } from '../output/check-rows.ts';
import { checkIdentity } from '../preflight/account-checks.ts';
import { checkStacks } from '../preflight/stack-checks.ts';
import type { AccountView } from '../runtime/account-view.ts';
import type { Io } from '../runtime/io.ts';
import type { DeployedPlace } from '../trace/place.ts';
import { clockRow } from './clock.ts';

export async function awsRows({ region: wanted, file }: Partial<DeployedPlace>, io: Io): Promise<readonly CheckRow[]> {
  const view = await io.connectAccount(wanted);
  try {
    const login = await loginOf(view, io);
    if ('result' in login) return [login];
    const { region, arn, clock } = login;
    const partition = partitionOf(region)?.name ?? '';
    const account = file?.deployment.account;
    const identity = checkIdentity(arn, account, { region, partition });
    const rows = [{ ...identity, seen: `${identity.seen}, region ${region}` }, ...clock];
    // Another account's answers would be about other stacks.
    if (file === undefined || identity.result === 'fail') return rows;
    const site = { view, account: account ?? arn.split(':')[4] ?? '', region, partition, clusters: [file] };
    return [...rows, ...(await checkStacks(site)).map(deployedRow)];
  } finally {
    view.close();
  }
}

interface Login {
  readonly region: string;
  readonly arn: string;
  readonly clock: readonly CheckRow[];
}

async function loginOf(view: AccountView, io: Io): Promise<Login | CheckRow> {
  try {
    const [region, before] = [await view.region(), io.now()];
    const arn = await view.callerArn();
    const at = view.answeredAt();
    return { region, arn, clock: at === undefined ? [] : [clockRow('AWS', at, before, io.now())] };
  } catch (error) {
    const { message, hint } = awsFailure('STS', error);
    const mend = `${hint ?? 'log in to AWS as for the aws command line'}; without AWS: --skip-aws`;
    return { id: 'identity', check: 'there is a login to AWS', result: 'fail', seen: message, mend };
  }
}

/** Preflight asks whether the name is free; here a stack that is not there yet is no fault, and cannot work either. */
function deployedRow(row: CheckRow): CheckRow {
  if (row.result !== 'pass' || row.seen !== 'free') return row;
  return { ...row, result: 'none', seen: 'not deployed yet', mend: 'countersign aws preflight, then docs/deploy.md' };
}
