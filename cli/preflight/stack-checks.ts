/** Whether the names of the stacks are free, or the stacks are this cluster's: CDK updates any stack that has the name. */
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { ask } from './check.ts';
import type { Check, Site } from './check.ts';

const clusterTag = 'countersign:cluster';

export async function checkStacks(site: Site): Promise<Check[]> {
  const wanted = site.clusters.flatMap(({ cluster: { name } }) =>
    Object.values(stackNames(name)).map((stack) => ({ name, stack })),
  );
  return Promise.all(wanted.map(({ name, stack }) => checkStack(site, name, stack)));
}

async function checkStack({ view, region }: Site, cluster: string, stack: string): Promise<Check> {
  const row = { id: 'stack', check: `stack ${stack} is free, or of cluster ${cluster}` } as const;
  const found = await ask(view.stack(stack), 'cloudformation:DescribeStacks');
  if (!found.ok) return { ...row, ...found.problem };
  if (found.value === undefined) return { ...row, result: 'pass', seen: 'free' };
  const { status, tags } = found.value;
  const owner = tags.get(clusterTag);
  if (owner !== cluster)
    return {
      ...row,
      result: 'fail',
      seen: owner === undefined ? `it exists without the tag ${clusterTag}` : `it is of cluster ${owner}`,
      mend: 'a deployment would replace it: give the cluster another name, account or region in countersign.yaml',
    };
  const seen = `of this cluster, ${status}`;
  const command = `aws cloudformation ${commandFor(status)} --stack-name ${stack} --region ${region}`;
  if (status.endsWith('_IN_PROGRESS') && status !== 'REVIEW_IN_PROGRESS')
    return { ...row, result: 'fail', seen, mend: `wait until it ends: ${command}` };
  if (/^(ROLLBACK|DELETE|CREATE|UPDATE_ROLLBACK)_FAILED$|^ROLLBACK_COMPLETE$/.test(status))
    // Both stacks keep what may not be lost: what is left has to be looked at before another try.
    return { ...row, result: 'fail', seen, mend: `${command}; docs/runbook.md tells what stays behind` };
  return { ...row, result: 'pass', seen };
}

function commandFor(status: string): string {
  if (status.endsWith('_IN_PROGRESS')) return 'describe-stack-events';
  return status === 'UPDATE_ROLLBACK_FAILED' ? 'continue-update-rollback' : 'delete-stack';
}
