/** Whether the principals exist that trust policies and key policies will name: AWS refuses a policy that names another. */
import { bootstrapRole } from '../aws/bootstrap.ts';
import { ask } from './check.ts';
import type { Check, Site } from './check.ts';

export async function checkPrincipals(site: Site): Promise<Check[]> {
  const named = new Map<string, Set<string>>();
  for (const { deployment } of site.clusters) {
    const { access, keys } = deployment;
    const lists = {
      'access.iam.principals': access.iam?.principals ?? [],
      'keys.administrators': keys.administrators ?? [],
      'keys.deleters': keys.deleters,
    };
    for (const [list, arns] of Object.entries(lists))
      for (const arn of arns) named.set(arn, (named.get(arn) ?? new Set()).add(list));
  }
  const rows = [...named].map(([arn, lists]) => checkPrincipal(site, arn, [...lists].join(', ')));
  return [...(await Promise.all(rows)), ...formationRole(site)];
}

/** The schema of countersign.yaml permits roles, users and accounts. */
const principalPattern = /^arn:([\w-]+):iam::(\d{12}):(?:(root)|(role|user)\/(?:.*\/)?([^/]+))$/;

async function checkPrincipal(site: Site, arn: string, lists: string): Promise<Check> {
  const row = { id: 'principal', check: `${arn} exists` } as const;
  const [, partition = '', account = '', root, kind, name = ''] = principalPattern.exec(arn) ?? [];
  if (partition !== site.partition)
    return {
      ...row,
      result: 'fail',
      seen: `it is of partition ${partition}, and ${site.region} of ${site.partition}`,
      mend: `name a principal of partition ${site.partition} in ${lists}`,
    };
  if (account !== site.account) {
    const look = root === undefined ? `aws iam get-${kind} --${kind}-name ${name}` : 'aws sts get-caller-identity';
    return {
      ...row,
      result: 'unknown',
      seen: `account ${account} cannot be checked from here (${lists})`,
      mend: `with a login of account ${account}: ${look}`,
    };
  }
  if (root !== undefined) return { ...row, result: 'pass', seen: `the account itself (${lists})` };
  const [which, permission] = kind === 'user' ? (['user', 'iam:GetUser'] as const) : (['role', 'iam:GetRole'] as const);
  const found = await ask(site.view.principal(which, name), permission);
  if (!found.ok) return { ...row, ...found.problem, seen: `${found.problem.seen} (${lists})` };
  if (found.value === arn) return { ...row, result: 'pass', seen: lists };
  if (found.value !== undefined)
    return {
      ...row,
      result: 'fail',
      seen: `IAM has ${found.value}`,
      mend: `name that ARN, with its path, in ${lists}`,
    };
  const mend =
    which === 'role'
      ? `make it first: aws iam create-role --role-name ${name} --assume-role-policy-document file://trust.json`
      : `make it first: aws iam create-user --user-name ${name}`;
  return { ...row, result: 'fail', seen: `IAM has no ${which} ${name} (${lists})`, mend };
}

/**
 * KMS refuses a key policy by which its maker could not change it later, and the maker is CloudFormation's role. Which role
 * that is can be chosen at `cdk bootstrap`, so another one than the usual is no error.
 */
function formationRole(site: Site): Check[] {
  const { clusters, account, partition } = site;
  const usual = bootstrapRole(site);
  const lists = clusters.flatMap(({ deployment: { keys } }) =>
    keys.administrators === undefined ? [] : [keys.administrators],
  );
  if (lists.length === 0) return [];
  const row = { id: 'principal', check: 'CloudFormation’s role is one of keys.administrators' } as const;
  const accountRoot = `arn:${partition}:iam::${account}:root`;
  if (lists.every((arns) => arns.includes(usual) || arns.includes(accountRoot)))
    return [{ ...row, result: 'pass', seen: usual }];
  const seen = `not ${usual}, which cdk bootstrap makes unless told otherwise`;
  return [{ ...row, result: 'unknown', seen, mend: 'add it, unless you deploy with another role that is on the list' }];
}
