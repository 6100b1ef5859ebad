/** Wires the authorizer to what its bundle was made with, and to the issuer. */
import { connectIssuer } from '../../adapters/openid-issuer.ts';
import { createAuthorizer } from './authorizer.ts';
import { bakedAccess } from './env.ts';

export const handler = createAuthorizer(bakedAccess(), {
  now: () => Date.now(),
  fetchJwks: connectIssuer(),
  // One JSON line each, as pino writes them: what the alarms filter on is `reason`.
  log: (entry) => void process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`),
});
