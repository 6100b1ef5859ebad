/** The command line of `npm run acceptance`. */
import { parseArgs } from 'node:util';
import { extras } from './world/step.ts';
import type { Extra } from './world/step.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

export const helpText = `Deploys two clusters into an AWS account of yours, tries what only AWS can show, and removes everything.

Usage: npm run acceptance -- --region REGION [options]

  --region REGION   where; the account is that of the AWS login (AWS_PROFILE, …)
  --plan            print the steps and the IAM policy that the login needs, and call nothing
  --account ID      with --plan: the account in the policy (default: ACCOUNT)
  --idle MINUTES    how long nothing calls the cluster between two signatures (default: 10; with --endpoint 0)
  --with restore    also restore a table to a point in time, which takes half an hour
  --subnet ID       where two instances start (default: a subnet of the default VPC). They need a way to the package repository of
                    Amazon Linux
  --keep            remove nothing, and print how to
  --report DIR      where the report is written, as NAME.json and NAME.md (default: dist/acceptance)
  --endpoint URL    a LocalStack or MiniStack instead of AWS
  --help

It takes about forty minutes, ten of them idle, and less than $0.20. All names begin with accept- or countersign-accept-. Ctrl-C ends the run and removes
everything too. What is left behind is always printed: each CA key waits seven days for its deletion, and costs nothing.

Exit codes: 0 passed, 1 a step failed or something could not be removed, 2 usage, 3 no login.
More: docs/acceptance.md
`;

export interface Options {
  readonly region: string;
  readonly plan: boolean;
  readonly account: string;
  readonly idle: number;
  readonly extras: ReadonlySet<Extra>;
  readonly subnet?: string;
  readonly keep: boolean;
  readonly report: string;
  readonly endpoint?: string;
}

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

export function parseOptions(argv: readonly string[]): Parsed {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: {
        region: { type: 'string' },
        plan: { type: 'boolean', default: false },
        account: { type: 'string', default: 'ACCOUNT' },
        idle: { type: 'string' },
        with: { type: 'string', multiple: true, default: [] },
        subnet: { type: 'string' },
        keep: { type: 'boolean', default: false },
        report: { type: 'string', default: 'dist/acceptance' },
        endpoint: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    return { kind: 'wrong', message: errorMessage(error) };
  }
  const {
    region,
    endpoint,
    help,
    idle = endpoint === undefined ? '10' : '0',
    with: wanted,
    subnet,
    ...others
  } = values;
  if (help) return { kind: 'help' };
  // Not AWS_REGION: an account's region for tests is chosen on purpose.
  if (region === undefined) return { kind: 'wrong', message: 'which region? --region eu-central-1' };
  if (!/^\d{1,3}$/.test(idle)) return { kind: 'wrong', message: '--idle is a number of minutes, up to 999' };
  const unknown = wanted.find((name) => !extras.some((extra) => extra === name));
  if (unknown !== undefined) return { kind: 'wrong', message: `--with ${unknown}: there is only ${extras.join(', ')}` };
  return {
    kind: 'run',
    options: {
      region,
      ...others,
      idle: Number(idle),
      extras: new Set(extras.filter((extra) => wanted.includes(extra))),
      ...(subnet === undefined ? {} : { subnet }),
      ...(endpoint === undefined ? {} : { endpoint: endpoint.replace(/\/+$/, '') }),
    },
  };
}
