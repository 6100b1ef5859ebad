import { connectAccount } from '../../cli/aws/connect-account.ts';
import { permissions } from '../../cli/preflight/check.ts';
import type { Check } from '../../cli/preflight/check.ts';
import { preflight as runPreflight } from '../../cli/preflight/preflight.ts';
import type { Limit } from '../world/emulator.ts';
import type { Step } from '../world/step.ts';

/** Checks of preflight that an emulator answers for other reasons than AWS. */
const limitOf: Partial<Record<Check['id'], Limit>> = { kms: 'service-quotas', region: 'region-list' };

export const preflight: Step = {
  id: 'preflight',
  title: 'countersign aws preflight',
  minute: 0,
  shows: 'login, region, bootstrap, quotas, principals and names of stacks',
  needs: ['roles'],
  statements: () => [{ sid: 'Preflight', actions: Object.keys(permissions), resources: ['*'] }],
  async run(site) {
    const { clusters, deployments } = site.plan.configuration;
    const planned = [...clusters].flatMap(([name, cluster]) => {
      const deployment = deployments.get(name);
      return deployment === undefined ? [] : [{ cluster, deployment }];
    });
    const places = await runPreflight(planned, async (region) => connectAccount(region, site.aws.options));
    for (const { id, check, result, seen, mend } of places.flatMap(({ checks }) => checks))
      await site.check(
        check,
        async () => {
          if (result === 'pass') return seen;
          throw new Error(mend === undefined ? seen : `${seen}; ${mend}`);
        },
        limitOf[id],
      );
  },
};
