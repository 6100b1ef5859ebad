/**
 * Access tokens of Google for the role of a Lambda function, without a secret of Google's: workload identity federation. The role's
 * signed request is exchanged at Google's STS for a token of the pool, and that one, if a service account is configured, for a token
 * of the service account.
 */
import type { GoogleFederation } from '../../core/configuration/providers/google-keys.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { callGoogle } from './call.ts';
import type { GoogleAnswer, GoogleCallOptions, GoogleHost } from './call.ts';
import { signSubjectToken } from './subject-token.ts';
import type { AwsCredentials } from './subject-token.ts';

export interface AccessTokenOptions extends GoogleCallOptions {
  readonly federation: GoogleFederation;
  readonly region: string;
  /** The credentials of the role, read for each login. */
  readonly credentials: () => AwsCredentials;
  readonly now: () => number;
}

export interface AccessTokens {
  /** Throws if Google cannot answer now, or refuses the login. */
  current(): Promise<string>;
  /** A token that Google refused is not used again. */
  forget(): void;
}

/** A token that ends sooner is replaced: Google's clock may be ahead, and the calls take time. */
const leewayMilliseconds = 60_000;
const mostTokenCharacters = 16_384;

/** Keeps a token until it ends. Callers at the same time wait for one login. */
export function accessTokens(options: AccessTokenOptions): AccessTokens {
  let kept: { readonly token: string; readonly until: number } | undefined;
  let login: Promise<string> | undefined;
  return {
    current() {
      if (kept !== undefined && kept.until - options.now() > leewayMilliseconds) return Promise.resolve(kept.token);
      login ??= logIn(options)
        .then((token) => {
          kept = token;
          return token.token;
        })
        .finally(() => {
          login = undefined;
        });
      return login;
    },
    forget() {
      kept = undefined;
    },
  };
}

interface Token {
  readonly token: string;
  readonly until: number;
}

async function logIn(options: AccessTokenOptions): Promise<Token> {
  const federated = await exchangeToken(options);
  const { serviceAccount } = options.federation;
  return serviceAccount === undefined ? federated : impersonate(federated.token, serviceAccount, options);
}

const tokenType = 'urn:ietf:params:oauth:token-type:access_token';

/** OAuth 2.0 Token Exchange (RFC 8693). */
async function exchangeToken(options: AccessTokenOptions): Promise<Token> {
  const { federation, region, credentials, now } = options;
  const { provider } = federation;
  const at = now();
  const subjectToken = await signSubjectToken({ credentials: credentials(), region, provider, now: at });
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: provider,
    // The permissions of the identity limit the token. IAM Credentials accepts no narrower scope.
    scope: 'https://www.googleapis.com/auth/cloud-platform',
    requested_token_type: tokenType,
    subject_token_type: 'urn:ietf:params:aws:token-type:aws4_request',
    subject_token: subjectToken,
  });
  const post = { contentType: 'application/x-www-form-urlencoded', body: form.toString() };
  const answer = await callGoogle({ host: 'sts.googleapis.com', path: '/v1/token', post }, options);
  const {
    access_token: token,
    token_type: type,
    issued_token_type: issued,
    expires_in: seconds,
  } = accepted(answer, 'sts.googleapis.com');
  if (type !== 'Bearer' || issued !== tokenType) return unreadable('sts.googleapis.com');
  return tokenOf(token, typeof seconds === 'number' ? at + seconds * 1_000 : Number.NaN, 'sts.googleapis.com');
}

/** https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken */
async function impersonate(token: string, serviceAccount: string, options: AccessTokenOptions): Promise<Token> {
  const body = JSON.stringify({ scope: ['https://www.googleapis.com/auth/compute.readonly'], lifetime: '3600s' });
  const path = `/v1/projects/-/serviceAccounts/${serviceAccount}:generateAccessToken`;
  const post = { contentType: 'application/json', body };
  const answer = await callGoogle({ host: 'iamcredentials.googleapis.com', path, token, post }, options);
  const { accessToken, expireTime } = accepted(answer, 'iamcredentials.googleapis.com');
  const until = typeof expireTime === 'string' ? Date.parse(expireTime) : Number.NaN;
  return tokenOf(accessToken, until, 'iamcredentials.googleapis.com');
}

/** Google's own messages are dropped: they may quote the token. */
function accepted({ status, body }: GoogleAnswer, host: GoogleHost): GoogleAnswer['body'] {
  if (status === 200) return body;
  throw new MisconfigurationError(
    `${host} refuses the role of this function (status ${status}): see docs/attestation/gce-vtpm.md`,
  );
}

function tokenOf(token: unknown, until: number, host: GoogleHost): Token {
  // A token goes into a header.
  if (typeof token !== 'string' || !/^[!-~]+$/.test(token) || token.length > mostTokenCharacters)
    return unreadable(host);
  return Number.isNaN(until) ? unreadable(host) : { token, until };
}

function unreadable(host: GoogleHost): never {
  throw new Error(`${host} answered without a token that can be used`);
}
