/**
 * What every AttestationStore and AttestationAdmin must do, whatever they are made of: core/ports/attestation-store.ts as
 * tests. The embedded store and the one in DynamoDB run the same suite.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { registerCases } from './attestation-register-cases.ts';
import { sceneOf } from './attestation-scene.ts';
import type { StoreUnderTest } from './attestation-scene.ts';
import { storeCases } from './attestation-store-cases.ts';

export function attestationStoreContract(name: string, make: () => Promise<StoreUnderTest>): void {
  describe.each([
    ['AttestationStore', storeCases],
    ['AttestationAdmin', registerCases],
  ] as const)(`%s contract: ${name}`, (_, cases) => {
    let made: StoreUnderTest | undefined;
    beforeAll(async () => {
      made = await make();
    });
    afterAll(() => made?.close());

    test.each(cases)('$name', async ({ run }) => {
      await expect(run(sceneOf(made!))).resolves.toBeUndefined();
    });
  });
}
