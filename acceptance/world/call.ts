/** Calls of a front door. */
import { X509Certificate } from 'node:crypto';
import { callerRoleName } from '../../core/configuration/resolve/deployment.ts';
import { httpClient } from '../../test/conformance/http-client.ts';
import type { ClientOptions, ConformanceFetch } from '../../test/conformance/http-client.ts';
import { ask, questionFor } from '../../test/conformance/questions.ts';
import type { Asked } from '../../test/conformance/questions.ts';
import { signAws } from '../../test/conformance/sigv4.ts';
import type { Credentials } from './clients.ts';
import { assume, roleArn } from './session.ts';
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

/** As the relay of a cluster calls it. */
export async function callerOf(site: Site, cluster: string): Promise<Authorize> {
  const relay = await assume(site, roleArn(site, site.plan.relay));
  return byRole(site, await assume(site, roleArn(site, callerRoleName(cluster)), { by: relay }));
}

/** Sign's answer to a request that it has to sign; throws any other. */
export async function signed(site: Site, cluster: string, asked: Asked): Promise<Answer> {
  const url = `${endpointOf(site, cluster, 'SignUrl')}/sign`;
  const answer = await withDoor(site, await callerOf(site, cluster), (fetch) => post(fetch, url, asked.object));
  if (answer.outcome !== 'issued')
    throw new Error(`${answer.status} ${answer.outcome ?? ''} ${answer.text.slice(0, 300)}`);
  return answer;
}

/** A request that sign signs. */
export function serving(site: Site): Asked {
  return ask(questionFor('kubernetes.io/kubelet-serving', { username: site.name, groups: [] }));
}

/** The certificate in sign's answer. */
export function certificateIn({ text }: Answer): X509Certificate {
  const { status } = JSON.parse(text) as { readonly status?: { readonly certificate?: string } };
  return new X509Certificate(Buffer.from(status?.certificate ?? '', 'base64'));
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
