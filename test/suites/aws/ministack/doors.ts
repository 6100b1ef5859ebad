/** The ways into cluster `demo` that its configuration can choose, as who calls there meets them. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { httpClient, type ClientOptions } from '../../../conformance/http-client.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';
import { signAws } from '../../../conformance/sigv4.ts';
import { functionName } from '../../../../core/configuration/resolve/deployment.ts';
import type { ClusterSettings, MiniStackDeployment } from '../../../harness/aws/ministack-deployment.ts';
import { invokeByUrl } from '../../../harness/lambda/function-urls.ts';
import type { ReceivedRequest } from '../../../harness/aws/sigv4-verifier.ts';

type Authorize = NonNullable<ClientOptions['authorize']>;

export interface Door {
  readonly name: string;
  readonly settings: ClusterSettings;
  /** The output that says where it is. */
  readonly url: 'SignUrl' | 'JwtSignUrl';
  /** As a permitted caller. */
  readonly authorize: (deployment: MiniStackDeployment) => Promise<Authorize>;
}

const keys = await generateKeyPair('ES256');
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'suite', alg: 'ES256' }] });
const issuer = 'https://kubernetes.example.com';
const audience = 'countersign.demo';
const subject = 'system:serviceaccount:default:relay';

export const doors = {
  httpApi: { name: 'an HTTP API for a role', settings: {}, url: 'SignUrl', authorize: byRole },
  functionUrl: {
    name: 'a Function URL',
    settings: { frontDoor: 'functionUrl' },
    url: 'SignUrl',
    authorize: byRole,
  },
  tokens: {
    name: 'an HTTP API for tokens',
    settings: { access: { jwt: { issuer, audience, subjects: [subject], jwks } } },
    url: 'JwtSignUrl',
    authorize: () => byToken(),
  },
} as const satisfies Readonly<Record<string, Door>>;

async function byRole(deployment: MiniStackDeployment): Promise<Authorize> {
  const { region } = deployment.emulator.client;
  return signAws({ region, credentials: await deployment.caller('demo') });
}

/** A token that is let in, but for what is said otherwise. */
export async function byToken(claims: Readonly<Record<string, unknown>> = {}): Promise<Authorize> {
  const now = Math.floor(Date.now() / 1_000);
  const good = { iss: issuer, aud: [audience], sub: subject, iat: now, nbf: now, exp: now + 600 };
  const token = await new SignJWT({ ...good, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'suite' })
    .sign(keys.privateKey);
  return async () => ({ authorization: `Bearer ${token}` });
}

interface Asked {
  readonly status: number;
  readonly outcome: string | null;
  readonly text: string;
}

/** Asks for a certificate that the rules permit. */
export async function askBehind(deployment: MiniStackDeployment, door: Door, authorize?: Authorize): Promise<Asked> {
  let sent: ReceivedRequest | undefined;
  const answer = await askAtDoor(deployment, door, async (call) => {
    const headers = (await authorize?.(call)) ?? {};
    const body = call.body ?? new Uint8Array();
    sent = { method: call.method, target: call.url.pathname, headers: { ...call.headers, ...headers }, body };
    return headers;
  });
  // MiniStack's Function URL checks signature and policies, and then tells the function nothing of the caller, which the
  // function refuses. Lambda tells it: so the same call is made once more, in the name of who signed it.
  if (door.name !== doors.functionUrl.name || answer.outcome !== 'forbidden' || sent === undefined) return answer;
  const [, accessKeyId = ''] = /Credential=([^/]+)\//.exec(sent.headers['authorization'] ?? '') ?? [];
  const { emulator } = deployment;
  const named = await invokeByUrl(emulator, functionName('demo', 'sign'), sent, deployment.arnOf(accessKeyId));
  return { status: named.statusCode, outcome: named.headers['x-countersign-outcome'] ?? null, text: named.body };
}

/** At the emulator's own door, whatever the emulator passes on to the function. */
export function askAtDoor(deployment: MiniStackDeployment, door: Door, authorize?: Authorize): Promise<Asked> {
  const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: 'suite', groups: [] }));
  return postAt(deployment, door, 'sign', object, authorize);
}

export async function postAt(
  deployment: MiniStackDeployment,
  { url }: Door,
  path: 'sign' | 'attest',
  body: object,
  authorize?: Authorize,
): Promise<Asked> {
  const client = httpClient({
    connect: { host: '127.0.0.1', port: deployment.emulator.port },
    ...(authorize === undefined ? {} : { authorize }),
  });
  // MiniStack calls its Function URLs https, and serves them without TLS, like everything.
  const base = deployment.outputs['demo']?.[url]?.replace('https:', 'http:');
  try {
    const answer = await client.fetch(`${base}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Uint8Array(Buffer.from(JSON.stringify(body))),
      signal: AbortSignal.timeout(60_000),
      redirect: 'manual',
    });
    const text = Buffer.from(await answer.arrayBuffer()).toString();
    return { status: answer.status, outcome: answer.headers.get('x-countersign-outcome'), text };
  } finally {
    client.close();
  }
}
