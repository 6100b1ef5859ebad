/** The cases of the authorizer's unit test. A mutant is caught by a caller that is admitted and must not be. */
import { fail } from 'node:assert/strict';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { Case } from '../../../harness/mutants/case-runner.ts';
import { cases as calls } from '../../../unit/lambdas/authorizer/cases.ts';
import { now } from '../../../unit/lambdas/authorizer/tokens.ts';

export function cases(): readonly Case[] {
  return calls.map(({ name, event, access, reason }) => ({
    name,
    async run() {
      const fetchJwks = () => Promise.reject(new Error('keys are given'));
      const { isAuthorized } = await createAuthorizer(access, { now: () => now, fetchJwks, log: () => {} })(event);
      if (isAuthorized && reason !== undefined) fail('is admitted');
      if (!isAuthorized && reason === undefined) throw new Error('is refused');
    },
  }));
}
