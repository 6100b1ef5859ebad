/** A MachinePool whose members share one bootstrap token, in virtual time: each node asks again when kubelet-authenticator would. */
import { expect, test } from 'vitest';
import { waitAfter } from '../../../../../kubelet-authenticator/credential/next-try.ts';
import { clusterApi, contextOf, machineObject } from '../../../../harness/attestation/machine-objects.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { createWorld, requestOf, said } from '../world.ts';

const minute = 60_000;

test('a pool of which the provider IDs are listed a minute late joins by itself, within two minutes of that', async () => {
  const members = byTier({ default: 150, deep: 1_000 });
  const world = await createWorld({ settings: { clusterApi } });
  const [begin, listed] = [world.clock.now, world.clock.now + minute];
  const nodes = Array.from({ length: members }, (_, index) => {
    const machine = `pool-${index}`;
    world.platform.machines.set(machine, { nodeNames: [machine] });
    // They start within ten seconds, and their kubelets ask at once.
    return { machine, askAt: begin + Math.floor((index * 10_000) / members), refusals: 0 };
  });
  const waiting = [...nodes];
  let joinedAt = 0;
  while (waiting.length > 0) {
    waiting.sort((a, b) => a.askAt - b.askAt);
    const node = waiting[0];
    if (node === undefined) break;
    world.clock.now = node.askAt;
    const { machine } = node;
    const found = node.askAt < listed ? [] : [machineObject({ kind: 'MachinePool', providerId: `null:///${machine}` })];
    const answer = said(await world.attest(requestOf({ evidence: { machine }, node: machine }), contextOf(found)));
    if (answer === 'approve') {
      waiting.shift();
      joinedAt = node.askAt;
      continue;
    }
    expect(answer).toBe('MachineNotFound');
    node.refusals += 1;
    node.askAt += waitAfter(answer, node.refusals);
  }
  expect(Math.max(...nodes.map(({ refusals }) => refusals))).toBe(1);
  expect(joinedAt).toBeLessThan(listed + 2 * minute);
  expect(world.platform.asked()).toBe(members);
  world.close();
});
