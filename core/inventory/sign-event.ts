import { objectOf } from '../encoding/json-object.ts';
import type { JsonObject } from '../encoding/json-object.ts';
import type { SignEvent } from './reconcile.ts';

/**
 * The signature in a CloudTrail record; undefined for other events, and for calls that failed. Throws TypeError for a signature that
 * cannot be attributed: it must not be taken for none.
 * https://docs.aws.amazon.com/kms/latest/developerguide/ct-sign.html
 */
export function signEventOf(record: JsonObject | undefined): SignEvent | undefined {
  if (record === undefined) throw new TypeError('an event of CloudTrail is no JSON object');
  const { eventSource, eventName, errorCode, eventID, requestID, eventTime } = record;
  if (eventSource !== 'kms.amazonaws.com' || eventName !== 'Sign' || errorCode !== undefined) return undefined;
  const keyId = keyOf(record);
  const at = Date.parse(String(eventTime));
  if (typeof eventID !== 'string' || typeof requestID !== 'string' || keyId === undefined || Number.isNaN(at))
    throw new TypeError('a signature of CloudTrail names no event, request, time or key');
  return { eventId: eventID, requestId: requestID, at, keyId, principal: principalOf(record) };
}

/** The key that signed: requestParameters.keyId may be an alias. MiniStack writes the parameter as KeyId, and no resources. */
function keyOf({ resources, requestParameters }: JsonObject): string | undefined {
  const arns = (Array.isArray(resources) ? resources : []).map((resource) => objectOf(resource)['ARN']);
  const { keyId, KeyId: ofEmulator } = objectOf(requestParameters);
  return [...arns, keyId, ofEmulator].find((arn): arn is string => typeof arn === 'string' && arn.includes(':key/'));
}

/** The role of a session, as every session of it has another ARN. */
function principalOf({ userIdentity }: JsonObject): string {
  const identity = objectOf(userIdentity);
  const role = objectOf(objectOf(identity['sessionContext'])['sessionIssuer'])['arn'];
  const arn = role ?? identity['arn'] ?? identity['invokedBy'];
  return typeof arn === 'string' ? arn : 'unknown';
}
