/** What the attest function needs of its environment to read VMs of Google. adapters/google has the rest. */
import { describe, expect, test } from 'vitest';
import { MisconfigurationError } from '../../../../core/ports/errors.ts';
import { readsVms } from '../../../../lambdas/attest/google.ts';

const environment = {
  AWS_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: 'ASIA',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AWS_SESSION_TOKEN: 'token',
};
const federation = {
  provider: '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/pool/providers/aws1',
};
const place = { projectNumber: '1', zone: 'a', instanceId: '2' };

describe('the environment that Lambda makes', () => {
  test('without a Region the function is not made', () => {
    expect(() => readsVms({ ...environment, AWS_REGION: '' }, Date.now)(federation)).toThrow(MisconfigurationError);
  });

  test.each(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'])(
    'without %s no VM can be read, and nothing is sent',
    async (name) => {
      const compute = readsVms({ ...environment, [name]: undefined }, Date.now)(federation);
      await expect(compute.describeInstance(place)).rejects.toThrow(`${name} is not set`);
    },
  );
});
