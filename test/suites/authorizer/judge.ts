/** Puts every case to the authorizer of the tree it stands in, and prints the refused ones that came in, as JSON. */
import { createAuthorizer } from '../../../lambdas/authorizer/authorizer.ts';
import { cases } from '../../unit/lambdas/authorizer/cases.ts';
import { now } from '../../unit/lambdas/authorizer/tokens.ts';

const wronglyIn: string[] = [];
const wronglyOut: string[] = [];
for (const { name, event, access, reason } of cases) {
  const authorizer = createAuthorizer(access, {
    now: () => now,
    fetchJwks: () => Promise.reject(new Error('keys are given')),
    log: () => {},
  });
  const { isAuthorized } = await authorizer(event);
  if (isAuthorized && reason !== undefined) wronglyIn.push(name);
  if (!isAuthorized && reason === undefined) wronglyOut.push(name);
}
process.stdout.write(JSON.stringify({ asked: cases.length, wronglyIn, wronglyOut }));
