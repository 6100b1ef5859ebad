/** The contract of the attestation store, put to one store. */
import { fail } from 'node:assert/strict';
import { registerCases } from '../../../../contract/attestation-register-cases.ts';
import { sceneOf } from '../../../../contract/attestation-scene.ts';
import type { StoreUnderTest } from '../../../../contract/attestation-scene.ts';
import { storeCases } from '../../../../contract/attestation-store-cases.ts';
import { errorMessage } from '../../../../../core/outcome/error-message.ts';
import type { Case } from '../../../../harness/mutants/case-runner.ts';

export function contractCases(open: () => Promise<StoreUnderTest>): readonly Case[] {
  let opened: Promise<StoreUnderTest> | undefined;
  return [...storeCases, ...registerCases].map(({ name, run }) => ({
    name,
    async run() {
      opened ??= open();
      try {
        await run(sceneOf(await opened));
      } catch (error) {
        // An error of the store is an answer, except for one of a mutant that cannot run.
        const message = `${String((error as Partial<Error>).name)}: ${errorMessage(error)}`;
        if (/ReferenceError|is not a function|ValidationException/.test(message)) throw error;
        fail(message);
      }
    },
  }));
}
