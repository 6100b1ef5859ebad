/**
 * `--sigv4`, by AWS's own library over each call as it goes out. Not the relay's adapter: that signs one path, never a query,
 * and an endpoint that forgives a mistake of the relay's should not look right because the checks make the same one.
 */
import { Sha256 } from '@aws-crypto/sha256-js';
import { fromNodeProviderChain, fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { SignatureV4 } from '@smithy/signature-v4';
import type { AuthorizedCall, ClientOptions } from './http-client.ts';

export interface SignAwsOptions {
  /** Else AWS_REGION, else what the host says. */
  readonly region?: string;
  /** Assumed first: the endpoint knows its callers by one role. */
  readonly roleArn?: string;
  /** Else what the AWS SDK finds. */
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
  const told = region ?? process.env['AWS_REGION'];
  const credentials =
    roleArn === undefined
      ? (given ?? fromNodeProviderChain())
      : fromTemporaryCredentials({
          ...(given === undefined ? {} : { masterCredentials: given }),
          params: { RoleArn: roleArn, RoleSessionName: 'countersign-conformance', DurationSeconds: 900 },
          ...(told === undefined ? {} : { clientConfig: { region: told } }),
        });
  const signers = new Map<string, SignatureV4>();

  return async ({ method, url, headers, body }: AuthorizedCall) => {
    const host = headers['host'] ?? url.host;
    let signer = signers.get(host);
    // One for all calls: it keeps the credentials until they end.
    if (signer === undefined) {
      const service = /\.lambda-url\./.test(host) ? 'lambda' : 'execute-api';
      signer = new SignatureV4({ service, region: told ?? regionIn(host) ?? 'us-east-1', credentials, sha256: Sha256 });
      signers.set(host, signer);
    }
    const contentType = headers['content-type'];
    const signed = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      // Others may be changed on the way.
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
