/** Connects the authorizer to its bundled configuration and to the issuer. */
import { redirects } from '../../adapters/lambda/redirects.ts';
import { connectIssuer } from '../../adapters/signing-api/openid-issuer.ts';
import { createAuthorizer, severityOf } from './authorizer.ts';
import type { AuthorizerLogEntry } from './authorizer.ts';
import { bundledAccess } from './env.ts';

// One JSON line per call. The metric filters of the alarms read `alarm`.
const log = (entry: AuthorizerLogEntry): void =>
  void process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);

const problems = redirects(process.env);
if (problems.length > 0)
  log({
    ...severityOf('NotConfigured'),
    authorized: false,
    reason: 'NotConfigured',
    detail: problems.join('; '),
  });

export const handler = createAuthorizer(problems.length > 0 ? undefined : bundledAccess(), {
  now: () => Date.now(),
  fetchJwks: connectIssuer(),
  log,
});
