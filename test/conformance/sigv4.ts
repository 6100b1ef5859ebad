/**
 * `--sigv4`: AWS's own library signs each outgoing call. The relay's adapter is not used. It signs one path and never a query,
 * and an endpoint that accepts a mistake of that adapter must not pass because the checks make the same mistake.
 */
import { Sha256 } from '@aws-crypto/sha256-js';
import { fromNodeProviderChain, fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { SignatureV4 } from '@smithy/signature-v4';
import type { AuthorizedCall, ClientOptions } from './http-client.ts';

export interface SignAwsOptions {
  /** Default: AWS_REGION, then the region in the host. */
  readonly region?: string;
  /** Assumed first: the endpoint admits callers by their role. */
  readonly roleArn?: string;
  /** Default: the credentials that the AWS SDK finds. */
  readonly credentials?: AwsCredentials;
}

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Function URLs are signed for `lambda`, API Gateway for `execute-api`: by host. */
export function signAws({
  region,
  roleArn,
  credentials: given,
}: SignAwsOptions): NonNullable<ClientOptions['authorize']> {
  const fixedRegion = region ?? process.env['AWS_REGION'];
  const credentials =
    roleArn === undefined
      ? (given ?? fromNodeProviderChain())
      : fromTemporaryCredentials({
          ...(given === undefined ? {} : { masterCredentials: given }),
          params: { RoleArn: roleArn, RoleSessionName: 'countersign-conformance', DurationSeconds: 900 },
          ...(fixedRegion === undefined ? {} : { clientConfig: { region: fixedRegion } }),
        });
  const signers = new Map<string, SignatureV4>();

  return async ({ method, url, headers, body }: AuthorizedCall) => {
    const host = headers['host'] ?? url.host;
    let signer = signers.get(host);
    // One signer for all calls: it caches the credentials until they expire.
    if (signer === undefined) {
      const service = /\.lambda-url\./.test(host) ? 'lambda' : 'execute-api';
      signer = new SignatureV4({
        service,
        region: fixedRegion ?? regionIn(host) ?? 'us-east-1',
        credentials,
        sha256: Sha256,
      });
      signers.set(host, signer);
    }
    const contentType = headers['content-type'];
    const signed = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      // Proxies may change other headers.
      headers: { host, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
      ...(body === undefined ? {} : { body }),
    });
    return signed.headers;
  };
}

/** `<id>.execute-api.<region>.amazonaws.com`, `<id>.lambda-url.<region>.on.aws`. */
function regionIn(host: string): string | undefined {
  return /\.(?:execute-api|lambda-url)\.([a-z0-9-]+)\./.exec(host)?.[1];
}
