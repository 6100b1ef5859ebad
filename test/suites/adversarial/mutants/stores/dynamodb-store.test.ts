/** The contract of the attestation store sees each mistake in the store of DynamoDB. */
import { describe } from 'vitest';
import { startMiniStack } from '../../../../harness/aws/ministack.ts';
import { describeMutants } from '../../../../harness/mutants/suite.ts';
import { requireTools } from '../../../../tools/tools.ts';
import { subject } from './dynamodb-store.ts';

const { skip } = await requireTools('ministack');

describe.skipIf(skip)('MiniStack', () => {
  describeMutants(subject, { mutants: 54, cases: 63 }, async () => {
    const emulator = await startMiniStack({ auth: false });
    return { path: emulator.url, close: () => emulator.stop() };
  });
});
