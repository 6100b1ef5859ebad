/**
 * Both functions fail at every call they make, of the stores, STS and EC2 alike, before and after it took effect, once or
 * for good; the requester tries again. Embedded stores; DynamoDB's are in test/suites/aws/contract.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AwsPorts } from '../../../../../core/attestation/aws/endpoints.ts';
import { createActors, oneMachine, storyClusters, twoMachines } from '../../../../contract/attested-story.ts';
import type { Actors } from '../../../../contract/attested-story.ts';
import { visitEveryFault } from '../../../../contract/faulty.ts';
import type { Faults } from '../../../../contract/faulty.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { openSite, startAwsPlatform } from '../../../../harness/attestation/attested-site.ts';
import type { AwsPlatform } from '../../../../harness/attestation/attested-site.ts';

let platform: AwsPlatform;
let actors: Actors;
beforeAll(async () => {
  platform = await startAwsPlatform();
  actors = createActors(platform);
});
afterAll(() => platform.close());

function failingAws(faults: Faults): AwsPorts {
  const { sts, ec2, regionCertificates } = platform.ports;
  const wrapped = faults.wrap('STS', { getCallerIdentity: sts });
  return { sts: (request) => wrapped.getCallerIdentity(request), ec2: faults.wrap('EC2', ec2), regionCertificates };
}

const stories = { 'one machine: each claim once': oneMachine, 'two machines, one name: one': twoMachines };
const ways = { 'one machine: each claim once': 'arrival', 'two machines, one name: one': 'straight' } as const;
/** In the default tier each story by one way, in the deep tier by both. */
const cases = Object.entries(stories).flatMap(([name, story]) =>
  byTier({ default: [ways[name as keyof typeof ways]], deep: ['arrival', 'straight'] as const }).map(
    (way) => [name, way, story] as const,
  ),
);

test.each(cases)(
  '%s, by way of %s',
  async (_, way, story) => {
    const scenario = async (faults: Faults): Promise<void> => {
      let waited = 0;
      const now = (): number => platform.now() + waited;
      const site = await openSite({ clusters: storyClusters, aws: platform.ports, now });
      try {
        const failing = site.functions({
          aws: failingAws(faults),
          store: (store) => faults.wrap('store', store),
          ledger: (ledger) => faults.wrap('ledger', ledger),
        });
        const passTime = (): void => void (waited += 31_000);
        const stage = { failing, healthy: site, dead: () => faults.crashed, passTime, store: site.store };
        await story(stage, actors, way);
      } finally {
        site.close();
      }
    };
    // Crashes in the default tier: faults.test.ts.
    const visited = await visitEveryFault(scenario, { kinds: byTier({ default: ['once'], deep: ['once', 'crash'] }) });
    const met = visited.flat().map(({ port, method }) => `${port} ${method}`);
    for (const call of ['STS getCallerIdentity', 'EC2 describeInstance', 'store claim', 'ledger complete'])
      expect(met).toContain(call);
    expect(visited.length).toBeGreaterThan(40);
  },
  60_000,
);
