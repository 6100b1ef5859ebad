/** `--sigv4`: by AWS's own libraries, not by our relay's, whose signatures an endpoint may accept for the wrong reason. */
import { Sha256 } from '@aws-crypto/sha256-js';
import { fromNodeProviderChain } from '@aws-sdk/credential-providers';
import { SignatureV4 } from '@smithy/signature-v4';
import type { AuthorizedCall, ClientOptions } from './http-client.ts';

/** Function URLs are signed for `lambda`, API Gateway for `execute-api`: by host (http-api.md). */
export function signAws(region: string | undefined): NonNullable<ClientOptions['authorize']> {
  const credentials = fromNodeProviderChain();
  return async ({ method, url, headers, body }: AuthorizedCall) => {
    const host = headers['host'] ?? url.host;
    const signer = new SignatureV4({
      service: /\.lambda-url\./.test(host) ? 'lambda' : 'execute-api',
      region: region ?? process.env['AWS_REGION'] ?? regionIn(host) ?? 'us-east-1',
      credentials,
      sha256: Sha256,
    });
    const signed = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      // Proxies and clients change others on the way.
      headers: { host, ...(headers['content-type'] && { 'content-type': headers['content-type'] }) },
      ...(body === undefined ? {} : { body }),
    });
    return signed.headers;
  };
}

/** `<id>.execute-api.<region>.amazonaws.com`, `<id>.lambda-url.<region>.on.aws`. */
function regionIn(host: string): string | undefined {
  return /\.(?:execute-api|lambda-url)\.([a-z0-9-]+)\./.exec(host)?.[1];
}
