/** GET …/healthz of a sign endpoint, with the operator's login. */
import { createSigV4, sessionNameOf } from '../../adapters/aws/sigv4.ts';
import { connectSigner } from '../../adapters/signing-api/client.ts';
import type { Authorize } from '../../adapters/signing-api/client.ts';
import { getDocument } from '../../adapters/signing-api/get.ts';
import { bearerFromFile } from '../../adapters/signing-api/token-file.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { HealthAnswer, HealthCall } from '../runtime/io.ts';

/** A cold start of the function and its first call of KMS take three seconds. */
const timeoutMilliseconds = 15_000;

/** Throws CommandFailure: `configuration` if there are no credentials, `temporary` without an answer. */
export async function readHealth({ url, login, region }: HealthCall, io: { now(): number }): Promise<HealthAnswer> {
  const headers = { accept: 'application/json', 'user-agent': 'countersign' };
  const signer = connectSigner({ url, connections: 1 });
  const { health } = signer;
  try {
    const credentials = await authorizeOf(
      { url, login, region },
      io,
    )?.({
      method: 'GET',
      url: health.url,
      headers,
      body: new Uint8Array(),
    });
    if (credentials?.ok === false) throw new CommandFailure(exitCodes.configuration, credentials.problem);
    // Without what STS took.
    const begun = performance.now();
    const authorized = credentials === undefined ? {} : { authorize: async () => credentials };
    const answer = await getDocument({ ...health, ...authorized }, { timeoutMilliseconds, headers });
    return {
      status: answer.status,
      body: answer.body.toString('utf8'),
      milliseconds: Math.round(performance.now() - begun),
      // The front door answers without it.
      outcome: String(answer.headers['x-countersign-outcome'] ?? ''),
    };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(exitCodes.temporary, `no answer: ${errorMessage(error)}`);
  } finally {
    signer.close();
  }
}

function authorizeOf({ url, login, region }: HealthCall, io: { now(): number }): Authorize | undefined {
  switch (login.kind) {
    case 'anonymous':
      return undefined;
    case 'tokenFile':
      return bearerFromFile(login.path);
    case 'role':
    case 'own': {
      const options = {
        url,
        roleArn: login.kind === 'role' ? login.arn : '',
        sessionName: sessionNameOf('status'),
        ...(region === undefined ? {} : { region }),
      };
      try {
        const own = login.kind === 'own' ? { assume: ownCredentials } : {};
        return createSigV4(options, { now: () => io.now(), ...own });
      } catch (error) {
        throw new CommandFailure(exitCodes.configuration, errorMessage(error), 'or --region names it');
      }
    }
  }
}

/** Those of the SDK's default chain, as its clients find them. */
async function ownCredentials() {
  const { STSClient } = await import('@aws-sdk/client-sts');
  const client = new STSClient();
  try {
    return await client.config.credentials();
  } finally {
    client.destroy();
  }
}
