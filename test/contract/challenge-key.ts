/** What every ChallengeKey must do, wherever its key lies: core/ports/challenge-key.ts as tests. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChallengeKey } from '../../core/ports/challenge-key.ts';

export interface ChallengeKeysUnderTest {
  readonly key: ChallengeKey;
  /** The same key, as another process or a later start has it. */
  readonly again: ChallengeKey;
  /** Of another cluster. */
  readonly other: ChallengeKey;
  readonly close: () => void;
}

export function challengeKeyContract(name: string, open: () => Promise<ChallengeKeysUnderTest>): void {
  describe(`the challenge key: ${name}`, () => {
    let made: ChallengeKeysUnderTest;
    beforeAll(async () => {
      made = await open();
    });
    afterAll(() => made?.close());

    test.each([1, 160, 4_096])('makes 32 bytes of a message of %i bytes, always the same', async (length) => {
      const message = new Uint8Array(randomBytes(length));
      const mac = hex(await made.key.mac(message));
      expect(mac).toMatch(/^[0-9a-f]{64}$/);
      expect([hex(await made.key.mac(message)), hex(await made.again.mac(message))]).toEqual([mac, mac]);
    });

    test('makes others of another message, and with another key', async () => {
      const message = new Uint8Array(randomBytes(64));
      const changed = new Uint8Array(message);
      changed[0]! ^= 1;
      const macs = [made.key.mac(message), made.key.mac(changed), made.other.mac(message)];
      expect(new Set((await Promise.all(macs)).map(hex)).size).toBe(3);
    });
  });
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
