/**
 * Signature Version 4 over the relay's calls, by a role that it assumes for them.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 *
 * The AWS SDK is loaded with the first call: a relay that needs none never has it in memory.
 */
import { keepFresh } from './sigv4-freshness.ts';
import type { RoleCredentials } from './sigv4-freshness.ts';

export interface SigV4Options {
  /** The endpoint, of which the host tells service and region. */
  readonly url: string;
  /** Assumed with whatever credentials the SDK's chain finds: IRSA, Pod Identity, environment, profile, instance. */
  readonly roleArn: string;
  /** Who is behind the role, in CloudTrail: the pod. */
  readonly sessionName: string;
  /** Of hosts that do not tell, such as a domain of one's own. */
  readonly region?: string;
}

interface SignableCall {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}
type SigningAnswer =
  | { readonly ok: true; readonly headers: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly message: string };

/** One try of AssumeRole, each attempt included; the call to the endpoint waits for it. */
const stsMilliseconds = 5_000;
/** What role chaining allows at most, and AWS's default. */
const sessionSeconds = 3_600;

/** Throws a sentence for the user when nothing says which region to sign for. */
export function createSigV4(
  options: SigV4Options,
  world: { readonly now: () => number; readonly assume?: () => Promise<RoleCredentials> } = { now: Date.now },
): (call: SignableCall) => Promise<SigningAnswer> {
  const { service, region = options.region } = endpointOf(new URL(options.url).hostname);
  if (region === undefined) throw new Error(`AWS_REGION must be set: ${options.url} does not say its region`);
  const credentials = keepFresh(world.assume ?? assumeRole(options, region), world.now);

  return async ({ method, url, headers, body }) => {
    let who: RoleCredentials;
    try {
      who = await credentials();
    } catch (error) {
      const message = refusalOf(error);
      if (message === undefined) throw new Error(`assuming the caller role: ${nameOf(error)}`, { cause: error });
      return { ok: false, message };
    }
    const [{ SignatureV4 }, { Sha256 }] = await Promise.all([
      import('@smithy/signature-v4'),
      import('@aws-crypto/sha256-js'),
    ]);
    const signer = new SignatureV4({ service, region, credentials: who, sha256: Sha256 });
    const signed = await signer.sign(
      {
        method,
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        query: {},
        // Only what gives the body its meaning: a proxy may well rewrite the rest.
        headers: { 'content-type': headers['content-type'] ?? '', host: url.host },
        body,
      },
      { signingDate: new Date(world.now()) },
    );
    return { ok: true, headers: signed.headers };
  };
}

/**
 * Which service a host belongs to, and where: `<id>.execute-api.<region>.amazonaws.com`,
 * `<id>.lambda-url.<region>.on.aws`, and what stands in for them. A domain of one's own leads to an HTTP API: function
 * URLs have none.
 */
export function endpointOf(host: string): { readonly service: 'execute-api' | 'lambda'; readonly region?: string } {
  const labels = host.split('.');
  const at = labels.findIndex((label) => label === 'execute-api' || label === 'lambda-url');
  const next = labels[at + 1] ?? '';
  return {
    service: labels[at] === 'lambda-url' ? 'lambda' : 'execute-api',
    ...(at >= 0 && /^[a-z]{2}(-[a-z]+)+-\d$/.test(next) ? { region: next } : {}),
  };
}

/** STS takes at most 64 characters of a few kinds; the end of a pod's name is what tells it from its siblings. */
export function sessionNameOf(podName: string): string {
  return `countersign-${podName.replace(/[^\w+=,.@-]/g, '-').slice(-52)}`;
}

function assumeRole({ roleArn, sessionName }: SigV4Options, region: string): () => Promise<RoleCredentials> {
  let provider: (() => Promise<RoleCredentials>) | undefined;
  return async () => {
    const { fromTemporaryCredentials } = await import('@aws-sdk/credential-providers');
    provider ??= fromTemporaryCredentials({
      params: { RoleArn: roleArn, RoleSessionName: sessionName, DurationSeconds: sessionSeconds },
      clientConfig: {
        region, // else it would ask us-east-1
        maxAttempts: 2,
        requestHandler: { connectionTimeout: stsMilliseconds / 2, requestTimeout: stsMilliseconds / 2 },
      },
    });
    return provider();
  };
}

/** Why there will be no credentials until somebody mends something; undefined when it is only a matter of time. */
function refusalOf(error: unknown): string | undefined {
  const { $fault, $metadata, message } = (error ?? {}) as {
    readonly $fault?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: number };
    readonly message?: unknown;
  };
  const name = nameOf(error);
  // Nothing in the chain had any: no role for the service account, no metadata service.
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') return 'no AWS credentials found';
  if ($fault !== 'client' || $metadata?.httpStatusCode === 429 || /throttl|limit|slowdown/i.test(name))
    return undefined;
  // Only this one's text is passed on: SignatureDoesNotMatch, for one, quotes the security token.
  const who = name === 'AccessDenied' && typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  return `the caller role cannot be assumed: ${name}${who}`;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
