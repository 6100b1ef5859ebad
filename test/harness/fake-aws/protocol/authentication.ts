/**
 * Who signed a request, as every AWS service finds out: the signature, then the session that the key belongs to, then the
 * place it was signed for.
 */
import { verifySigV4, type ReceivedRequest, type SigV4Refusal, type Verified } from '../../aws/sigv4-verifier.ts';
import { partitionOf } from '../machine/instance.ts';
import type { Credential, FakeAws } from '../world.ts';

/** Those of the fakes, by the names that signatures are for. */
export type FakeService = 'sts' | 'ec2' | 'servicequotas';

export interface Caller {
  readonly credential: Credential;
  readonly verified: Verified;
  readonly region: string;
}

/** The codes are AWS's, the sentences those that STS says with them. */
export interface AwsError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/**
 * `port`: the fake's own, under whose loopback address clients with a configured endpoint come for any region. A presigned
 * request never does: its signature holds for AWS's own host only.
 */
export function authenticate(
  aws: FakeAws,
  request: ReceivedRequest,
  service: FakeService,
  port: number,
): Caller | AwsError {
  const host = request.headers['host'] ?? '';
  const loopback = [`127.0.0.1:${port}`, `localhost:${port}`].includes(host);
  const hostRegion = regionOfHost(host, service);
  if (hostRegion === undefined && !loopback)
    return { status: 421, code: 'NotThisHost', message: 'this server does not have that name' };

  const verified = verifySigV4(request, (id) => aws.secretOf(id), aws.now());
  if (typeof verified === 'string') return signatureErrors[verified];
  if (verified.service !== service) return mismatch(`Credential should be scoped to correct service: '${service}'. `);
  if (hostRegion !== undefined && verified.region !== hostRegion)
    return mismatch(`Credential should be scoped to a valid region, not '${verified.region}'. `);
  if (verified.presigned && hostRegion === undefined) return mismatch('presigned for no AWS host');

  const credential = aws.credential(verified.accessKeyId);
  // A temporary key without its token, another's token, a token with a key that has none.
  if (credential === undefined || credential.sessionToken !== verified.sessionToken) return invalidToken;
  if (credential.expiresAt !== undefined && credential.expiresAt <= aws.now())
    return { status: 403, code: 'ExpiredToken', message: 'The security token included in the request is expired' };
  return { credential, verified, region: verified.region };
}

/** Regional endpoints, FIPS and dual-stack ones among them; STS has a global one that is signed for us-east-1. */
function regionOfHost(host: string, service: FakeService): string | undefined {
  if (host === 'sts.amazonaws.com' && service === 'sts') return 'us-east-1';
  const [, name, region = '', domain] =
    /^(\w+)(?:-fips)?\.([a-z]{2,4}(?:-[a-z]+)+-\d+)\.(amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|api\.aws)$/.exec(
      host,
    ) ?? [];
  const usual = { 'aws-cn': 'amazonaws.com.cn', 'aws-eusc': 'amazonaws.eu' }[partitionOf(region)] ?? 'amazonaws.com';
  return name === service && [usual, 'api.aws'].includes(domain ?? '') ? region : undefined;
}

export function hostOf(region: string, service: FakeService = 'sts'): string {
  const domain = { 'aws-cn': 'amazonaws.com.cn', 'aws-eusc': 'amazonaws.eu' }[partitionOf(region)] ?? 'amazonaws.com';
  return `${service}.${region}.${domain}`;
}

const mismatch = (message: string): AwsError => ({ status: 403, code: 'SignatureDoesNotMatch', message });
const incomplete = (message: string): AwsError => ({ status: 400, code: 'IncompleteSignature', message });
const wrongSignature = mismatch(
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.',
);
const invalidToken: AwsError = {
  status: 403,
  code: 'InvalidClientTokenId',
  message: 'The security token included in the request is invalid.',
};

const signatureErrors: Readonly<Record<SigV4Refusal, AwsError>> = {
  'no signature': {
    status: 403,
    code: 'MissingAuthenticationToken',
    message: 'Request is missing Authentication Token',
  },
  'two signatures': incomplete('Signature in both header and query string'),
  'malformed signature': incomplete('Authorization must contain Credential, SignedHeaders and Signature'),
  'unknown access key': invalidToken,
  'no date': incomplete('Date must be in ISO-8601 basic format, and the credential of the same day'),
  expired: mismatch('Signature expired: it is now later than the date it bears allows'),
  'not yet valid': mismatch('Signature not yet current: the date it bears is still to come'),
  'host or date not signed': mismatch("'Host' or 'X-Amz-Date' must be a 'SignedHeader' in the AWS Authorization."),
  'an x-amz- header is not signed': mismatch("an 'X-Amz-' header must be a 'SignedHeader' in the AWS Authorization."),
  'headers not in order': wrongSignature,
  'another body': wrongSignature,
  'ambiguous query': { status: 400, code: 'MalformedQueryString', message: 'The query string is ambiguous' },
  'signature does not match': wrongSignature,
};
