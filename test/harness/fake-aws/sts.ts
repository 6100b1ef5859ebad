/**
 * AWS STS: GetCallerIdentity (presigned GET and POST), AssumeRole, AssumeRoleWithWebIdentity. It believes no signature
 * unverified, answers in JSON if the request accepts that and in XML otherwise, and fails as told.
 */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { randomUUID } from 'node:crypto';
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import { createTestAuthority, type KeyAndCertificate } from '../x509/test-certificates.ts';
import { authenticate, hostOf, type AwsError, type Caller } from './protocol/authentication.ts';
import { readQueryProtocol, type Parameters } from './protocol/query-protocol.ts';
import { escapeXml, startService, type Answer, type Service } from './service.ts';
import type { Credential, FakeAws } from './world.ts';

export interface FakeSts extends Service {
  /** What STS did, in order; nothing that it refused is here. */
  readonly calls: readonly StsCall[];
  /** Trusted for `https://` URLs; present when started with `tls`. */
  readonly caPem?: string;
  /** Of the credentials given from now on, when the caller does not say. */
  lifetimeSeconds: number;
  /** From now on, until `mend`, the next `fail`, or so many times, in the format that the caller accepts. */
  fail(
    status: number,
    code: string,
    message: string,
    how?: { readonly when?: 'before' | 'after'; readonly times?: number },
  ): void;
}

export interface StsCall {
  readonly action: string;
  /** Access key id; absent for unsigned calls (AssumeRoleWithWebIdentity). */
  readonly signedBy?: string;
  readonly region?: string;
  readonly host: string;
  readonly presigned: boolean;
  readonly signedHeaders: readonly string[];
  /** The header by which EKS and we bind a presigned request, when it was signed. */
  readonly k8sAwsId?: string;
  /** Besides Action and Version. */
  readonly parameters: Parameters;
}

interface StsOptions {
  readonly aws: FakeAws;
  /** Serves TLS, with a certificate for the STS hosts of these regions, `localhost` and 127.0.0.1. */
  readonly tls?: readonly string[];
  /** Projected tokens that AssumeRoleWithWebIdentity takes, for any role. */
  readonly webIdentityTokens?: readonly string[];
}

const version = '2011-06-15';
const namespace = `https://sts.amazonaws.com/doc/${version}/`;

/** What each action may be given. */
const parametersOf: Readonly<Record<string, readonly string[]>> = {
  GetCallerIdentity: [],
  AssumeRole: ['RoleArn', 'RoleSessionName', 'DurationSeconds', 'ExternalId'],
  AssumeRoleWithWebIdentity: ['RoleArn', 'RoleSessionName', 'DurationSeconds', 'WebIdentityToken'],
};

export async function startFakeSts({ aws, tls, webIdentityTokens = [] }: StsOptions): Promise<FakeSts> {
  const calls: StsCall[] = [];
  let failures: { error: AwsError; when: 'before' | 'after'; left: number }[] = [];
  const certificate = tls === undefined ? undefined : await certificateFor(tls);

  function handle(request: ReceivedRequest, port: number): Answer {
    const json = (request.headers['accept'] ?? '').split(',').some((type) => type.trim() === 'application/json');
    const [failure] = failures;
    if (failure !== undefined) {
      failure.left -= 1;
      if (failure.left <= 0) failures.shift();
      if (failure.when === 'after') answerTo(request, port);
      return errorAnswer(failure.error, json);
    }
    const answer = answerTo(request, port);
    return 'code' in answer ? errorAnswer(answer, json) : resultAnswer(answer, json);
  }

  /** Checks, does, and records it. */
  function answerTo(request: ReceivedRequest, port: number): Result | AwsError {
    const read = readQueryProtocol(request);
    if ('code' in read) return read;
    const { Action: action = '', Version: said, ...parameters } = read.parameters;
    const known = Object.hasOwn(parametersOf, action) ? parametersOf[action] : undefined;
    if (known === undefined || said !== version)
      return invalid(
        'InvalidAction',
        `Could not find operation ${action} for version ${said ?? 'NO_VERSION_SPECIFIED'}`,
      );
    const unknown = Object.keys(parameters).find((name) => !known.includes(name));
    if (unknown !== undefined) return invalid('ValidationError', `${unknown} is no parameter of ${action}`);

    const host = request.headers['host'] ?? '';
    if (action === 'AssumeRoleWithWebIdentity') {
      if (!webIdentityTokens.includes(parameters['WebIdentityToken'] ?? ''))
        return invalid('InvalidIdentityToken', 'No OpenIDConnect provider found in your account for it');
      const result = assume(undefined, action, parameters);
      if (!('code' in result)) calls.push({ action, host, presigned: false, signedHeaders: [], parameters });
      return result;
    }
    const caller = authenticate(aws, request, 'sts', port);
    if ('code' in caller) return caller;
    const result = action === 'AssumeRole' ? assume(caller, action, parameters) : identify(caller);
    if ('code' in result) return result;
    const { signedHeaders, presigned, region } = caller.verified;
    const id = signedHeaders.includes('x-k8s-aws-id') ? request.headers['x-k8s-aws-id'] : undefined;
    const call = {
      action,
      signedBy: caller.credential.accessKeyId,
      region,
      host,
      presigned,
      signedHeaders,
      parameters,
    };
    calls.push({ ...call, ...(id === undefined ? {} : { k8sAwsId: id }) });
    return result;
  }

  function assume(caller: Caller | undefined, action: string, parameters: Parameters): Result | AwsError {
    const {
      RoleArn: arn = '',
      RoleSessionName: name = '',
      DurationSeconds: duration,
      ExternalId: externalId,
    } = parameters;
    if (!/^[\w+=,.@-]{2,64}$/.test(name))
      return invalid('ValidationError', "Value at 'roleSessionName' failed to satisfy constraint");
    const seconds = duration === undefined ? sts.lifetimeSeconds : Number(duration);
    if (!(seconds >= 900 && seconds <= 43_200))
      return invalid('ValidationError', "Value at 'durationSeconds' failed to satisfy constraint");
    const role = aws.findRole(arn);
    const who = caller?.credential.principal.arn;
    const trusted = who === undefined || role?.trusts === undefined || role.trusts.includes(who);
    // A role that is not there is refused in the same words.
    if (role === undefined || !trusted || (role.externalId !== undefined && role.externalId !== externalId))
      return {
        status: 403,
        code: 'AccessDenied',
        message: `User: ${who ?? 'anonymous'} is not authorized to perform: sts:${action} on resource: ${arn}`,
      };
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html#id_session-tags_permissions-required
    const { transitiveTags, allows = [] } = caller?.credential.principal ?? {};
    if (transitiveTags === true && !allows.some((action) => action === '*' || action === 'sts:TagSession'))
      return {
        status: 403,
        code: 'AccessDenied',
        message: `User: ${who} is not authorized to perform: sts:TagSession on resource: ${arn}`,
      };
    const tags = transitiveTags === undefined ? {} : { transitiveTags };
    const session = aws.session(role, name, Math.min(seconds, sts.lifetimeSeconds), tags);
    const { arn: sessionArn, userId } = session.principal;
    return {
      action,
      fields: {
        Credentials: credentialFields(session),
        AssumedRoleUser: { Arn: sessionArn, AssumedRoleId: userId },
      },
    };
  }

  const service = await startService(handle, certificate?.server);
  const sts: FakeSts = {
    ...service,
    calls,
    ...(certificate === undefined ? {} : { caPem: certificate.caPem }),
    lifetimeSeconds: 3_600,
    fail(status, code, message, { when = 'before', times = Infinity } = {}) {
      failures = failures.filter(({ left }) => left !== Infinity);
      failures.push({ error: { status, code, message }, when, left: times });
    },
    mend() {
      failures = [];
      service.mend();
    },
  };
  return sts;
}

interface Result {
  readonly action: string;
  readonly fields: Fields;
}
interface Fields {
  readonly [name: string]: string | Fields;
}

function identify({ credential: { principal } }: Caller): Result {
  const { account, arn, userId } = principal;
  return { action: 'GetCallerIdentity', fields: { Account: account, Arn: arn, UserId: userId } };
}

function credentialFields({ accessKeyId, secretAccessKey, sessionToken = '', expiresAt = 0 }: Credential): Fields {
  const expiration = new Date(expiresAt).toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    SessionToken: sessionToken,
    Expiration: expiration,
  };
}

function resultAnswer({ action, fields }: Result, json: boolean): Answer {
  const requestId = randomUUID();
  const headers = { 'x-amzn-requestid': requestId };
  if (json) {
    const body = { [`${action}Result`]: fields, ResponseMetadata: { RequestId: requestId } };
    return {
      status: 200,
      contentType: 'application/json',
      body: JSON.stringify({ [`${action}Response`]: body }),
      headers,
    };
  }
  const metadata = `  <ResponseMetadata>\n    <RequestId>${requestId}</RequestId>\n  </ResponseMetadata>\n`;
  const result = `  <${action}Result>\n${xml(fields, '    ')}  </${action}Result>\n`;
  const body = `<${action}Response xmlns="${namespace}">\n${result}${metadata}</${action}Response>\n`;
  return { status: 200, contentType: 'text/xml', body, headers };
}

function errorAnswer({ status, code, message }: AwsError, json: boolean): Answer {
  const requestId = randomUUID();
  const headers = { 'x-amzn-requestid': requestId };
  const error = { Type: status >= 500 ? 'Receiver' : 'Sender', Code: code, Message: message };
  if (json) {
    const body = JSON.stringify({ Error: error, RequestId: requestId });
    return { status, contentType: 'application/json', body, headers };
  }
  const inner = `  <Error>\n${xml(error, '    ')}  </Error>\n  <RequestId>${requestId}</RequestId>\n`;
  const body = `<ErrorResponse xmlns="${namespace}">\n${inner}</ErrorResponse>\n`;
  return { status, contentType: 'text/xml', body, headers };
}

function xml(fields: Fields, indent: string): string {
  return Object.entries(fields)
    .map(([name, value]) => {
      const inside = typeof value === 'string' ? escapeXml(value) : `\n${xml(value, `${indent}  `)}${indent}`;
      return `${indent}<${name}>${inside}</${name}>\n`;
    })
    .join('');
}

function invalid(code: string, message: string): AwsError {
  return { status: 400, code, message };
}

async function certificateFor(regions: readonly string[]): Promise<{ server: KeyAndCertificate; caPem: string }> {
  const authority = await createTestAuthority('fake AWS');
  const names = [...regions.map((region) => hostOf(region)), 'sts.amazonaws.com', 'localhost'];
  const sans = [
    ...names.map((value) => ({ type: 'dns' as const, value })),
    { type: 'ip' as const, value: '127.0.0.1' },
  ];
  const extensions = [new x509.SubjectAlternativeNameExtension(sans)];
  const server = await authority.issue({ subject: [{ CN: ['fake STS'] }], extensions });
  return { server, caPem: authority.certificatePem };
}
