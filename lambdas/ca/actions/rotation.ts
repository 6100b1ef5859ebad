/** What `countersign ca rotate` reads here: the CAs and profiles as they are deployed, and the record of a CA that is configured no more. */
import { loadAuthority } from '../../../core/ca/authority.ts';
import { KeyStateError } from '../../../core/ports/errors.ts';
import { deploymentOf, encodeDeployment } from '../../../core/rotation/deployment.ts';
import type { EncodedDeployment } from '../../../core/rotation/deployment.ts';
import type { CaAction } from './action.ts';

export interface RotationAnswer {
  readonly cluster: string;
  readonly deployment: EncodedDeployment;
}

export const rotation: CaAction<{ readonly ca: string }, RotationAnswer> = {
  decode({ ca, ...others }) {
    return typeof ca === 'string' && Object.keys(others).length === 0 ? { ca } : undefined;
  },
  async run({ ca: asked }, { cluster, cas, profiles, key, store }) {
    const deployment = await deploymentOf({ name: cluster, cas, profiles }, asked, async (name, configuration) => {
      const record = await store.find(name);
      if (configuration === undefined) return record === undefined ? {} : { record };
      const fault = await faultOf(() => loadAuthority(configuration, key(name), store));
      if (fault !== undefined || record === undefined) return { fault: fault ?? `there is no CA ${name} yet` };
      return { record };
    });
    return { cluster, deployment: encodeDeployment(deployment) };
  },
  logged: ({ deployment: { cas } }) => ({
    failed: false,
    cas: Object.fromEntries(cas.map(({ name, record }) => [name, record === undefined ? 'awaited' : 'there'])),
  }),
};

async function faultOf(load: () => ReturnType<typeof loadAuthority>): Promise<string | undefined> {
  try {
    const loaded = await load();
    return loaded.ok ? undefined : loaded.problem.message;
  } catch (error) {
    // A disabled key is an answer here: an operator has to see why the CA is not in force.
    if (error instanceof KeyStateError) return error.message;
    throw error;
  }
}
