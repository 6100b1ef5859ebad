/**
 * The proof with which an AWS role logs in to Google: a signed GetCallerIdentity request, which Google sends to STS to learn who
 * signed it. The header x-goog-cloud-target-resource, which the signature covers, makes the request worthless to any other pool.
 * https://cloud.google.com/iam/docs/workload-identity-federation-with-other-clouds
 *
 * The libraries are loaded at the first login.
 */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

interface SubjectTokenOptions {
  readonly credentials: AwsCredentials;
  /** Of the STS endpoint. */
  readonly region: string;
  /** The provider of the workload identity pool: `//iam.googleapis.com/projects/…`. */
  readonly provider: string;
  readonly now: number;
}

const query = { Action: 'GetCallerIdentity', Version: '2011-06-15' };

/** Percent-encoded JSON of the request, as the token type urn:ietf:params:aws:token-type:aws4_request demands. */
export async function signSubjectToken({ credentials, region, provider, now }: SubjectTokenOptions): Promise<string> {
  const host = `sts.${region}.amazonaws.com`;
  const [{ SignatureV4 }, { Sha256 }] = await Promise.all([
    import('@smithy/signature-v4'),
    import('@aws-crypto/sha256-js'),
  ]);
  const signer = new SignatureV4({ service: 'sts', region, credentials, sha256: Sha256, applyChecksum: false });
  const { headers } = await signer.sign(
    {
      method: 'POST',
      protocol: 'https:',
      hostname: host,
      path: '/',
      query,
      headers: { host, 'x-goog-cloud-target-resource': provider },
    },
    { signingDate: new Date(now) },
  );
  const request = {
    url: `https://${host}/?${new URLSearchParams(query).toString()}`,
    method: 'POST',
    headers: Object.entries(headers).map(([key, value]) => ({ key, value })),
  };
  return encodeURIComponent(JSON.stringify(request));
}
