import type { AttestContext } from '../../core/attestation/attest-question.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

/** A Machine of Cluster API has fewer addresses and shorter strings. */
const maxAddresses = 100;
const maxTextLength = 512;

/** Unknown keys are refused: they could demand a check that this version does not make. */
export function decodeContext(json: unknown): Result<AttestContext, string> {
  if (json === undefined) return success({});
  if (!hasOnly(json, ['machine'])) return failure('context is not an object, or has keys other than machine');
  const { machine } = json;
  if (machine === undefined) return success({});
  if (!hasOnly(machine, ['nodeName', 'providerId', 'addresses']))
    return failure('context.machine is not an object, or has keys other than nodeName, providerId, addresses');
  const { nodeName, providerId, addresses } = machine;
  if (nodeName !== undefined && !isText(nodeName))
    return failure('context.machine.nodeName is not a string, or too long');
  if (providerId !== undefined && !isText(providerId))
    return failure('context.machine.providerId is not a string, or too long');
  if (addresses !== undefined && !isTexts(addresses))
    return failure('context.machine.addresses is not a list of strings, or too long');
  return success({ machine });
}

function hasOnly(value: unknown, keys: readonly string[]): value is JsonObject {
  return isObject(value) && Object.keys(value).every((key) => keys.includes(key));
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxTextLength;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= maxAddresses && value.every(isText);
}
