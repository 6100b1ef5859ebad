/** Decodes `context` of a call (docs/signing-api.md, Machine objects). What it says is judged in core/attestation/cluster-api. */
import { mostMachines } from '../../core/ports/signing-endpoint.ts';
import type { AttestContext, ClusterObject, MachineObject } from '../../core/ports/signing-endpoint.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

/** Objects of Cluster API have shorter strings, and fewer addresses and attestors. */
const maxTextLength = 512;
const maxAddresses = 64;
const maxAttestors = 64;

/**
 * Unknown keys are refused: they could demand a check that this version does not make. The problem names the place of the value.
 */
export function decodeContext(json: unknown): Result<AttestContext, string> {
  if (json === undefined) return success({});
  if (!isObject(json)) return failure('context is not an object');
  const unknown = wrongValueIn(json, 'context', contextFields);
  return unknown === undefined ? success(json) : failure(unknown);
}

interface Field {
  readonly wanted: string;
  readonly optional?: true;
  readonly holds: (value: unknown) => boolean;
  /** Of an object, or of each object in a list. */
  readonly fields?: Readonly<Record<string, Field>>;
}

const text: Field = {
  wanted: `a string of at most ${maxTextLength} characters`,
  holds: (value) => typeof value === 'string' && value.length <= maxTextLength,
};
const flag: Field = { wanted: 'true or false', holds: (value) => typeof value === 'boolean' };
const texts = (most: number): Field => ({
  wanted: `a list of at most ${most} strings of at most ${maxTextLength} characters`,
  holds: (value) => Array.isArray(value) && value.length <= most && value.every((entry) => text.holds(entry)),
});
const optional = (field: Field): Field => ({ ...field, optional: true });

const machineFields: Readonly<Record<keyof MachineObject, Field>> = {
  kind: { wanted: 'Machine or MachinePool', holds: (value) => value === 'Machine' || value === 'MachinePool' },
  namespace: text,
  name: text,
  clusterName: text,
  providerId: text,
  nodeName: optional(text),
  bootstrapReady: flag,
  deleting: flag,
  addresses: optional(texts(maxAddresses)),
};
const clusterFields: Readonly<Record<keyof ClusterObject, Field>> = {
  deleting: flag,
  kubeletAuthentication: optional(flag),
  authorizedAttestors: optional(texts(maxAttestors)),
};
const contextFields: Readonly<Record<keyof AttestContext, Field>> = {
  clusterApi: optional({
    wanted: 'an object',
    holds: isObject,
    fields: {
      machines: {
        wanted: `a list of at most ${mostMachines} objects`,
        holds: (value) => Array.isArray(value) && value.length <= mostMachines && value.every(isObject),
        fields: machineFields,
      },
      cluster: optional({ wanted: 'an object', holds: isObject, fields: clusterFields }),
    },
  }),
};

/** A sentence about the first value of another form; undefined if there is none. */
function wrongValueIn(object: JsonObject, at: string, fields: Readonly<Record<string, Field>>): string | undefined {
  const known = Object.keys(fields);
  if (Object.keys(object).some((key) => !known.includes(key))) return `${at} has keys other than ${known.join(', ')}`;
  for (const [key, field] of Object.entries(fields)) {
    const value = object[key];
    if (value === undefined && field.optional === true) continue;
    if (!field.holds(value)) return `${at}.${key} is not ${field.wanted}`;
    const wrong = wrongInside(value, `${at}.${key}`, field);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongInside(value: unknown, at: string, { fields }: Field): string | undefined {
  if (fields === undefined) return undefined;
  if (isObject(value)) return wrongValueIn(value, at, fields);
  for (const [index, entry] of (value as readonly JsonObject[]).entries()) {
    const wrong = wrongValueIn(entry, `${at}[${index}]`, fields);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
