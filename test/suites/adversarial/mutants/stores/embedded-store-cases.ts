import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openEmbeddedAttestations } from '../../../../../adapters/embedded/attestations.ts';
import { embeddedUnderTest } from '../../../../contract/embedded-attestations.ts';
import type { Case } from '../../../../harness/mutants/case-runner.ts';
import { contractCases } from './store-cases.ts';

/** `folder`: for the files of the store. */
export function cases(folder: string): readonly Case[] {
  const newFile = () => join(folder, `${randomUUID()}.sqlite`);
  return contractCases(() => Promise.resolve(embeddedUnderTest(openEmbeddedAttestations, newFile)));
}
