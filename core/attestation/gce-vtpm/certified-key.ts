/**
 * The name of the requested key as gke-exec-auth-plugin loads it into the TPM (pkg/tpmattest of kubernetes/cloud-provider-gcp): a public
 * area with these attributes and this scheme, and the coordinates as Go's big.Int.Bytes writes them, without leading zero bytes.
 * A TPM that pads them certifies another name, so both names count: they are names of the same key.
 */
import { createPublicKey } from 'node:crypto';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { attribute, encodePublicArea, objectName } from '../tpm/structures/public-area.ts';
import type { EccKey } from '../tpm/structures/public-area.ts';
import { eccKeyOf } from '../tpm/structures/public-key.ts';

/** The problem completes `the requested key …`. `spki`: DER. */
export function certifiedNames(spki: Uint8Array): Result<readonly Uint8Array[], string> {
  const key = eccKeyOf(createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }));
  if (!key.ok) return key;
  const { curve, x, y } = key.value;
  // The plugin makes no others.
  if (curve !== 'P-256') return failure('is not a key on P-256');
  return success([nameOf({ ...key.value, x: stripped(x), y: stripped(y) }), nameOf(key.value)]);
}

function nameOf(key: EccKey): Uint8Array {
  const area = {
    nameAlg: 'sha256',
    attributes: attribute.sign | attribute.userWithAuth,
    authPolicy: new Uint8Array(),
    scheme: { name: 'ecdsa', hash: 'sha256' },
    key,
  } as const;
  return objectName('sha256', encodePublicArea(area));
}

function stripped(coordinate: Uint8Array): Uint8Array {
  const first = coordinate.findIndex((byte) => byte !== 0);
  return coordinate.subarray(first === -1 ? coordinate.length : first);
}
