/** Calls of a front door. */
import { httpClient } from '../../test/conformance/http-client.ts';
import type { ClientOptions, ConformanceFetch } from '../../test/conformance/http-client.ts';
import { signAws } from '../../test/conformance/sigv4.ts';
import type { Credentials } from './clients.ts';
import type { Site } from './step.ts';

export type Authorize = NonNullable<ClientOptions['authorize']>;

export function byRole({ place }: Site, credentials: Credentials): Authorize {
  return signAws({ region: place.region, credentials });
}

export function byToken(token: string): Authorize {
  return async () => ({ authorization: `Bearer ${token}` });
}

/** The base URL of a cluster's endpoint, from the outputs of its stack. */
export function endpointOf({ outputs, emulator }: Site, cluster: string, output: 'SignUrl' | 'JwtSignUrl'): string {
  const url = outputs.get(cluster)?.[output];
  if (url === undefined) throw new Error(`the stack of ${cluster} has no output ${output}`);
  // Emulators call their Function URLs https and serve them without TLS.
  return emulator === undefined ? url : url.replace('https:', 'http:');
}

export async function withDoor<T>(
  { emulator, count }: Site,
  authorize: Authorize | undefined,
  work: (fetch: ConformanceFetch) => Promise<T>,
): Promise<T> {
  // The names of emulated endpoints resolve nowhere.
  const connect =
    emulator === undefined ? {} : { connect: { host: '127.0.0.1', port: Number(new URL(emulator.endpoint).port) } };
  const client = httpClient({ ...connect, ...(authorize === undefined ? {} : { authorize }) });
  try {
    return await work((url, request) => {
      count('endpoint call');
      return client.fetch(url, request);
    });
  } finally {
    client.close();
  }
}

export interface Answer {
  readonly status: number;
  /** What the handler says; null if the front door answered in its place. */
  readonly outcome: string | null;
  readonly text: string;
}

export async function post(fetch: ConformanceFetch, url: string, body: object): Promise<Answer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
    signal: AbortSignal.timeout(60_000),
    redirect: 'manual',
  });
  const text = Buffer.from(await answer.arrayBuffer()).toString('utf8');
  return { status: answer.status, outcome: answer.headers.get('x-countersign-outcome'), text };
}
