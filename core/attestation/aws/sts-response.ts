/**
 * Reads from STS's answer to GetCallerIdentity who signed. We chose host, action and headers, so the answer comes from STS. Only
 * its exact form is accepted, so that no other answer of AWS is taken for it (CVE-2020-16250: a lenient parser found the
 * expected element inside text that the caller had sent).
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { ThrottledError } from '../../ports/errors.ts';
import type { StsAnswer } from './endpoints.ts';
import { isObject } from '../../encoding/json-object.ts';
import type { JsonObject } from '../../encoding/json-object.ts';
import { readJsonObject } from '../../encoding/strict-json.ts';

export interface Caller {
  readonly partition: string;
  readonly account: string;
  /** The name without its path, which STS omits. */
  readonly role: string;
  /** The session name: the instance id, if EC2 assumed the role for an instance. */
  readonly session: string;
}

/** The instance identity role: every instance has it, and no principal can assume it, because it has no trust policy. */
export const identityRole = 'aws:ec2-instance';

/** ARNs are not split at colons, because the name of the identity role has one. Names of IAM roles contain no colon ([\w+=,.@-]). */
const arnPattern =
  /^arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts::([0-9]{12}):assumed-role\/(aws:ec2-instance|[A-Za-z0-9_+=,.@-]{1,64})\/(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/;

/** Error codes of throttling that STS sends with status 400. */
const throttled: ReadonlySet<unknown> = new Set(['Throttling', 'ThrottlingException', 'RequestLimitExceeded']);

/** Throws if STS throttles. */
export function readCaller(answer: StsAnswer): Result<Caller, string> {
  const { status, contentType, body } = answer;
  if (status === 400 && isThrottled(body)) throw new ThrottledError('STS answers that it is asked too often');
  // 403: the signature is for another key, node, cluster, signer or audience, or the credentials have expired.
  if (status === 403) return failure('is not a signature over this request, or its credentials are over');
  if (status !== 200) return failure(`is answered by STS with status ${status}`);
  if (!/^application\/json(?:; ?charset=utf-8)?$/i.test(contentType))
    return failure('is answered by STS with something other than JSON');
  const result = resultOf(body);
  if (result === undefined) return failure('is answered by STS with something other than GetCallerIdentity');
  const { Account: account, Arn: arn, UserId: userId } = result;
  const [, partition = '', arnAccount, role = '', session = ''] = arnPattern.exec(text(arn)) ?? [];
  if (arnAccount === undefined) return failure('is not signed by a role that an instance has');
  if (account !== arnAccount) return failure('is answered by STS with two accounts');
  if (!isUserId(text(userId), arnAccount, role, session))
    return failure('is answered by STS with a user id that is not of the same session');
  return success({ partition, account: arnAccount, role, session });
}

/** A user id begins with the unique id of the role, which a later role of the same name does not get. The identity role has no such id. */
function isUserId(userId: string, account: string, role: string, session: string): boolean {
  if (role === identityRole) return userId === `${account}:${identityRole}:${session}`;
  return /^AROA[A-Z0-9]{12,124}:/.test(userId) && userId.slice(userId.indexOf(':') + 1) === session;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** {"GetCallerIdentityResponse": {"GetCallerIdentityResult": {Account, Arn, UserId}, "ResponseMetadata": {RequestId}}} */
function resultOf(body: string): JsonObject | undefined {
  const read = readJsonObject(Buffer.from(body, 'utf8'));
  const object = read.ok ? read.value : undefined;
  const response = onlyKeys(object, ['GetCallerIdentityResponse'])?.['GetCallerIdentityResponse'];
  const parts = onlyKeys(response, ['GetCallerIdentityResult', 'ResponseMetadata']);
  if (onlyKeys(parts?.['ResponseMetadata'], ['RequestId']) === undefined) return undefined;
  return onlyKeys(parts?.['GetCallerIdentityResult'], ['Account', 'Arn', 'UserId']);
}

/** An object that has these keys and no others. */
function onlyKeys(value: unknown, keys: readonly string[]): JsonObject | undefined {
  if (!isObject(value) || Object.keys(value).length !== keys.length) return undefined;
  return keys.every((key) => Object.hasOwn(value, key)) ? value : undefined;
}

function isThrottled(body: string): boolean {
  const read = readJsonObject(Buffer.from(body, 'utf8'));
  const error = read.ok ? read.value['Error'] : undefined;
  return isObject(error) && throttled.has(error['Code']);
}
