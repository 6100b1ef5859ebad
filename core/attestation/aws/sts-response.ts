/**
 * STS's answer to GetCallerIdentity: who signed. It is believed because we chose the host, the action and the headers;
 * still it is read as closed as it can be, so that no other answer of AWS could be taken for one (CVE-2020-16250: a
 * lenient parser found the expected element inside text that the caller had sent).
 */
import type { Problem } from '../../encoding/der-reader.ts';
import { ThrottledError } from '../../ports/errors.ts';
import type { StsAnswer } from './endpoints.ts';
import { isObject } from '../../encoding/json-object.ts';
import type { JsonObject } from '../../encoding/json-object.ts';
import { readJsonObject } from '../../encoding/strict-json.ts';

export interface Caller {
  readonly partition: string;
  readonly account: string;
  /** Name without path: STS does not tell the path. */
  readonly role: string;
  /** The session's name: of a role that EC2 assumed for an instance, the instance id. */
  readonly session: string;
}

/** The instance identity role: every instance has it, and no principal can assume it, because it has no trust policy. */
export const identityRole = 'aws:ec2-instance';

/**
 * `assumed-role/<role>/<session>`. Not to be split at colons: the identity role's name holds one. Names that people give
 * to roles cannot (IAM: [\w+=,.@-]).
 */
const arnPattern =
  /^arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts::([0-9]{12}):assumed-role\/(aws:ec2-instance|[A-Za-z0-9_+=,.@-]{1,64})\/(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/;

/** Error codes by which STS says "later", with a status that says "never". */
const throttled: ReadonlySet<unknown> = new Set(['Throttling', 'ThrottlingException', 'RequestLimitExceeded']);

/** Throws when STS is only busy. */
export function readCaller(answer: StsAnswer): { readonly caller: Caller } | Problem {
  const { status, contentType, body } = answer;
  if (status === 400 && isThrottled(body)) throw new ThrottledError('STS answers that it is asked too often');
  // 403: our request is not what was signed: another key, node, cluster, signer or audience, or expired credentials.
  if (status === 403) return { problem: 'is not a signature over this request, or its credentials are over' };
  if (status !== 200) return { problem: `is answered by STS with status ${status}` };
  if (!/^application\/json(?:; ?charset=utf-8)?$/i.test(contentType))
    return { problem: 'is answered by STS with something other than JSON' };
  const result = resultOf(body);
  if (result === undefined) return { problem: 'is answered by STS with something other than GetCallerIdentity' };
  const { Account: account, Arn: arn, UserId: userId } = result;
  const [, partition = '', arnAccount, role = '', session = ''] = arnPattern.exec(text(arn)) ?? [];
  if (arnAccount === undefined) return { problem: 'is not signed by a role that an instance has' };
  if (account !== arnAccount) return { problem: 'is answered by STS with two accounts' };
  if (!isUserId(text(userId), arnAccount, role, session))
    return { problem: 'is answered by STS with a user id that is not of the same session' };
  return { caller: { partition, account: arnAccount, role, session } };
}

/** A role has a unique id, which a role of the same name that comes after it does not get; the identity role has none. */
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
