/**
 * A presigned GetCallerIdentity request that the verifier sends, in the wire form of `aws eks get-token`. The verifier
 * learns from STS who signed it, and can use the signature for nothing else.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';

export interface IdentityProof {
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken: string;
  };
  readonly region: string;
  /** The host name of STS in that region. */
  readonly host: string;
  /** The purpose of the proof, signed as the header `x-k8s-aws-id`. */
  readonly id: string;
  readonly now: number;
}

/** STS accepts it for 15 minutes, whatever this value is. */
const expiresSeconds = 60;

export async function signIdentityProof({ credentials, region, host, id, now }: IdentityProof): Promise<string> {
  const signer = new SignatureV4({ service: 'sts', region, credentials, sha256: Sha256 });
  const { query = {} } = await signer.presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname: host,
      path: '/',
      query: { Action: 'GetCallerIdentity', Version: '2011-06-15' },
      headers: { host, 'x-k8s-aws-id': id },
    },
    { expiresIn: expiresSeconds, signingDate: new Date(now) },
  );
  const parameters = Object.entries(query).map(([name, value]) => `${percent(name)}=${percent(String(value))}`);
  return `k8s-aws-v1.${Buffer.from(`https://${host}/?${parameters.join('&')}`).toString('base64url')}`;
}

/** Percent-encoding of RFC 3986, which SigV4 requires. */
function percent(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
