import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { judge, raceKinds, racersFor } from '../../../contract/attestation-races.ts';
import { sceneOf } from '../../../contract/attestation-scene.ts';
import type { StoreUnderTest } from '../../../contract/attestation-scene.ts';
import { embeddedUnderTest } from '../../../contract/embedded-attestations.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import type { FromRacer, ToRacer } from './attestation-racer.ts';

/** Of each kind; in the deep tier as on the emulators. */
const roundsOf = byTier({
  default: { 'node name': 50, machine: 50, proof: 50, address: 50 },
  deep: { 'node name': 1_000, machine: 1_000, proof: 250, address: 250 },
});

const folder = temporaryFolder('races');
let made: StoreUnderTest;
let processes: readonly [ChildProcess, ChildProcess];

beforeAll(() => {
  const files = ['shared.sqlite', 'other.sqlite'].map((name) => join(folder.path, name));
  const [shared = ''] = files;
  made = embeddedUnderTest(openEmbeddedAttestations, () => files.shift() ?? '');
  const start = () => fork(join(import.meta.dirname, 'attestation-racer.ts'), [shared]);
  processes = [start(), start()];
});
afterAll(async () => {
  for (const child of processes) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  await made.close();
  folder.remove();
});

async function ask(child: ChildProcess, message: ToRacer): Promise<FromRacer> {
  const reply = once(child, 'message');
  child.send(message);
  const [answer] = (await reply) as [FromRacer];
  return answer;
}

test.each(raceKinds.map((kind) => [kind, roundsOf[kind]] as const))(
  'two processes on one file, two first uses of one %s, both having looked before, %i times: exactly one wins',
  async (kind, rounds) => {
    const wins = [0, 0];
    for (let round = 0; round < rounds; round += 1) {
      const scene = sceneOf(made);
      const racers = racersFor(kind, scene);
      const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
      const seen = await Promise.all(order.map((i) => ask(processes[i], { look: racers[i].look })));
      expect(seen).toEqual([nothing, nothing]);
      const wrote = [false, false];
      await Promise.all(
        order.map(async (i) => {
          const answer = await ask(processes[i], { claim: racers[i].claim });
          if (!('wrote' in answer)) throw new Error(JSON.stringify(answer));
          wrote[i] = answer.wrote.kind === 'written';
        }),
      );
      const winner = await judge(scene, racers, wrote);
      wins[winner] = (wins[winner] ?? 0) + 1;
    }
    expect(wins[0]! + wins[1]!).toBe(rounds);
    expect(Math.min(...wins)).toBeGreaterThan(0);
  },
);

test('two processes make the first MAC of a store at once, 30 times: one key', async () => {
  const raw = new DatabaseSync(join(folder.path, 'shared.sqlite'));
  const macs: string[] = [];
  for (let round = 0; round < 30; round += 1) {
    raw.exec('DELETE FROM challenge_key');
    const answers = await Promise.all(processes.map((each) => ask(each, { mac: 'challenge' })));
    const [mac, same] = answers.map((answer) => ('mac' in answer ? answer.mac : JSON.stringify(answer)));
    expect(mac).toMatch(/^[0-9a-f]{64}$/);
    expect(same).toBe(mac);
    macs.push(mac!);
  }
  raw.close();
  expect(new Set(macs).size).toBe(30);
});

const nothing = { seen: { once: [null], addresses: [null], listed: false } };
