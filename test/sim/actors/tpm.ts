/**
 * The TPMs of machines: each machine quotes with its attestation key, and answers the challenge that its denied request holds
 * with another request. It may lose the challenge, answer too late, or answer twice.
 */
import { objectOf } from '../../../core/encoding/json-object.ts';
import type { NullAnswer, NullDevice } from '../../harness/attestation/null-provider.ts';
import type { Life } from './simulated-cluster.ts';

/** The state of one TPM. */
export interface SimulatedTpm {
  akName: string;
  resetCount: number;
  /** When the clock would have been 0; virtual milliseconds. */
  since: number;
}

export function createTpm(life: Life, id: string): SimulatedTpm {
  return { akName: `ak of ${id}`, resetCount: 0, since: life.runtime.timeline.now() - 1_000 };
}

/** The machine was started anew: after a power failure the clock resumes from the time that the TPM stored last. */
export function resetTpm({ runtime, random }: Life, tpm: SimulatedTpm, id: string): void {
  tpm.resetCount += 1;
  const failed = random.chance(0.3);
  if (failed) tpm.since += 20_000;
  runtime.tell(() => `the TPM of ${id} is reset${failed ? ' by a power failure' : ''}`);
}

export function quote({ runtime }: Life, tpm: SimulatedTpm, answer?: NullAnswer): NullDevice {
  const { akName, resetCount, since } = tpm;
  const clock = Math.max(0, Math.floor(runtime.timeline.now() - since));
  return { akName, resetCount, clock, ...(answer === undefined ? {} : { answer }) };
}

const mostLooks = 12;

/** Looks now and then whether the request is denied with a challenge, and calls `answer` with it. */
export function awaitChallenge(life: Life, uid: string, answer: (challenge: string) => void): void {
  const { runtime, random, at } = life;
  const { timeline } = runtime;

  function look(left: number): void {
    const challenge = challengeOf(life, uid);
    if (challenge === undefined) {
      if (left > 0) at(timeline.now() + random.between(500, 15_000), () => look(left - 1));
      return;
    }
    if (random.chance(0.1)) return runtime.count('step: machine: loses its challenge');
    const late = random.chance(0.1);
    runtime.count(`step: machine: answers${late ? ' too late' : ''}`);
    at(timeline.now() + (late ? random.between(130_000, 200_000) : random.between(10, 5_000)), () => {
      answer(challenge);
      if (!random.chance(0.2)) return;
      runtime.count('step: machine: answers twice');
      answer(challenge);
    });
  }
  look(mostLooks);
}

/** The annotation of a request that was denied with a challenge. */
export function challengeOf({ requests }: Life, uid: string): string | undefined {
  const object = requests.objects().find(({ metadata }) => metadata.uid === uid);
  const annotations = objectOf(objectOf(object?.['metadata'])['annotations']);
  const challenge = annotations['countersign.dev/attestation-challenge'];
  return typeof challenge === 'string' ? challenge : undefined;
}
