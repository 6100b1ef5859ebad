/** GET …/healthz of a sign endpoint, with the operator's login. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createSigV4, sessionNameOf } from '../../adapters/aws/sigv4.ts';
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
  const health = new URL(`${url}/healthz`);
  const headers = { accept: 'application/json', 'user-agent': 'countersign' };
  const credentials = await authorizeOf(
    { url, login, region },
    io,
  )?.({
    method: 'GET',
    url: health,
    headers,
    body: new Uint8Array(),
  }).catch((error: unknown) => {
    throw new CommandFailure(exitCodes.temporary, errorMessage(error), 'try again');
  });
  if (credentials?.ok === false) throw new CommandFailure(exitCodes.configuration, credentials.problem);
  const request = health.protocol === 'https:' ? httpsRequest : httpRequest;
  // Without what STS took.
  const begun = performance.now();
  try {
    const {
      status,
      headers: answered,
      body,
    } = await getDocument(
      { url: health, request, ...(credentials === undefined ? {} : { authorize: async () => credentials }) },
      { timeoutMilliseconds, headers },
    );
    return {
      status,
      body: body.toString('utf8'),
      milliseconds: Math.round(performance.now() - begun),
      // The front door answers without it.
      outcome: String(answered['x-countersign-outcome'] ?? ''),
    };
  } catch (error) {
    throw new CommandFailure(exitCodes.temporary, `no answer: ${errorMessage(error)}`);
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
      const sign = () =>
        createSigV4(options, { now: () => io.now(), ...(login.kind === 'own' ? { assume: ownCredentials } : {}) });
      return async (call) => sign()(call);
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
