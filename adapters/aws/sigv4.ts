/**
 * Signs the relay's calls with Signature Version 4, with the credentials of a role that it assumes.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 *
 * The AWS SDK is loaded at the first call, so a relay that logs in with a token does not load it.
 */
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { regionName } from '../../core/ports/region-name.ts';
import type { ForwardProxy } from '../http/proxy.ts';
import { keepFresh } from './sigv4-freshness.ts';
import type { RoleCredentials } from './sigv4-freshness.ts';

export interface SigV4Options {
  /** The endpoint. Its host name contains service and region. */
  readonly url: string;
  /** Assumed with the credentials of the SDK's default chain: IRSA, Pod Identity, environment, profile, instance. */
  readonly roleArn: string;
  /** The pod's name, for CloudTrail. */
  readonly sessionName: string;
  /** For hosts whose name does not contain the region, such as a custom domain. */
  readonly region?: string;
  /** For the calls to STS. */
  readonly proxy?: ForwardProxy;
}

interface SignableCall {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}
/** AssumeRole, including its retry. The call to the endpoint waits for it. */
const stsMilliseconds = 5_000;
/** The maximum for role chaining, and AWS's default. */
const sessionSeconds = 3_600;

/** Throws if neither the host name nor `options.region` gives the region. */
export function createSigV4(
  options: SigV4Options,
  dependencies: { readonly now: () => number; readonly assume?: () => Promise<RoleCredentials> } = { now: Date.now },
): (call: SignableCall) => Promise<Result<Readonly<Record<string, string>>, string>> {
  const { service, region = options.region } = endpointOf(new URL(options.url).hostname);
  if (region === undefined)
    throw new Error(`AWS_REGION must be set: ${options.url} does not contain a region in its host name`);
  const currentCredentials = keepFresh(dependencies.assume ?? assumeRole(options, region), dependencies.now);

  return async ({ method, url, headers, body }) => {
    let credentials: RoleCredentials;
    try {
      credentials = await currentCredentials();
    } catch (error) {
      const message = refusalOf(error);
      if (message === undefined) throw new Error(`assuming the caller role: ${nameOf(error)}`, { cause: error });
      return failure(message);
    }
    const [{ SignatureV4 }, { Sha256 }] = await Promise.all([
      import('@smithy/signature-v4'),
      import('@aws-crypto/sha256-js'),
    ]);
    const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
    const signed = await signer.sign(
      {
        method,
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        query: {},
        // Other headers are not signed, since a proxy may rewrite them.
        headers: { 'content-type': headers['content-type'] ?? '', host: url.host },
        body,
      },
      { signingDate: new Date(dependencies.now()) },
    );
    return success(signed.headers);
  };
}

/**
 * Service and region of a host name: `<id>.execute-api.<region>.amazonaws.com`, `<id>.lambda-url.<region>.on.aws` and their
 * emulated forms. A custom domain belongs to an HTTP API, since function URLs cannot have one.
 */
export function endpointOf(host: string): { readonly service: 'execute-api' | 'lambda'; readonly region?: string } {
  const labels = host.split('.');
  const index = labels.findIndex((label) => label === 'execute-api' || label === 'lambda-url');
  const candidate = labels[index + 1] ?? '';
  return {
    service: labels[index] === 'lambda-url' ? 'lambda' : 'execute-api',
    ...(index >= 0 && regionName.test(candidate) ? { region: candidate } : {}),
  };
}

/** STS permits 64 characters of a limited set. The end of a pod's name distinguishes it from other replicas. */
export function sessionNameOf(podName: string): string {
  return `countersign-${podName.replace(/[^\w+=,.@-]/g, '-').slice(-52)}`;
}

function assumeRole({ roleArn, sessionName, proxy }: SigV4Options, region: string): () => Promise<RoleCredentials> {
  let provider: (() => Promise<RoleCredentials>) | undefined;
  return async () => {
    const { fromNodeProviderChain, fromTemporaryCredentials } = await import('@aws-sdk/credential-providers');
    const requestHandler = {
      connectionTimeout: stsMilliseconds / 2,
      requestTimeout: stsMilliseconds / 2,
      ...(proxy === undefined ? {} : { httpsAgent: { keepAlive: true, proxyEnv: { ...proxy } } }),
    };
    provider ??= fromTemporaryCredentials({
      params: { RoleArn: roleArn, RoleSessionName: sessionName, DurationSeconds: sessionSeconds },
      // A token of the service account is exchanged at STS too, so its client needs the proxy.
      ...(proxy === undefined
        ? {}
        : { masterCredentials: fromNodeProviderChain({ clientConfig: { region, requestHandler } }) }),
      clientConfig: {
        region, // the default would be us-east-1
        maxAttempts: 2,
        requestHandler,
      },
    });
    return provider();
  };
}

/** Why no credentials are available until an operator acts; undefined for a temporary failure. */
function refusalOf(error: unknown): string | undefined {
  const { $fault, $metadata, message } = (error ?? {}) as {
    readonly $fault?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: number };
    readonly message?: unknown;
  };
  const name = nameOf(error);
  // No provider of the chain has credentials: no role for the service account, no metadata service.
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') return 'no AWS credentials found';
  if ($fault !== 'client' || $metadata?.httpStatusCode === 429 || /throttl|limit|slowdown/i.test(name))
    return undefined;
  // Only the message of AccessDenied is passed on: others, such as SignatureDoesNotMatch, quote the security token.
  const detail = name === 'AccessDenied' && typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  return `the caller role cannot be assumed: ${name}${detail}`;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
