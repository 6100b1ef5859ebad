/** `countersign machines ek`: the name of the machine whose TPM has this endorsement key, from any form in which tools print the key. */
import { decodeEndorsementKey } from '../../core/attestation/tpm/endorsement-key.ts';
import { attribute, decodePublicArea } from '../../core/attestation/tpm/structures/public-area.ts';
import type { PublicArea } from '../../core/attestation/tpm/structures/public-area.ts';
import { publicKeyOf } from '../../core/attestation/tpm/structures/public-key.ts';
import { childrenOf, derTag, elementIn } from '../../core/encoding/der-reader.ts';
import { decodePem, pemBlocks } from '../../core/encoding/pem.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { readBytes } from '../cluster/cluster-choice.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

/** The forms of the file. */
type Form = 'certificate' | 'public key' | 'public area of a TPM';

export interface NamedKey {
  /** `tpm#<SHA-256 of the SPKI>`. */
  readonly name: string;
  /** Such as `RSA-2048`. */
  readonly key: string;
  readonly form: Form;
}

/** Throws CommandFailure if the file is not one endorsement key. */
export async function endorsementKeyName(file: string, io: Io): Promise<NamedKey> {
  const found = keyIn(withoutFill(await readBytes(file, io)));
  if (!found.ok)
    throw new CommandFailure(
      exitCodes.refused,
      `${file} ${found.problem}`,
      'the endorsement key is a certificate or public key (PEM or DER), or a public area as tpm2_createek -u writes it',
    );
  const { form, kind, der } = found.value;
  const key = decodeEndorsementKey({ kind, der });
  if (!key.ok) throw new CommandFailure(exitCodes.refused, `${file}: the endorsement key ${key.problem}`);
  if (key.value.certificate?.facts.isCa === true)
    throw new CommandFailure(exitCodes.refused, `${file} is the certificate of a CA, not of an endorsement key`);
  return { name: `tpm#${key.value.hash}`, key: key.value.kind, form };
}

type Found = Parameters<typeof decodeEndorsementKey>[0] & { readonly form: Form };

/** Some manufacturers fill the NV index of a certificate behind it with 00 or ff. Other bytes behind a certificate are refused. */
function withoutFill(bytes: Uint8Array): Uint8Array {
  const [tag, form, high = 0, low = 0] = bytes;
  // A SEQUENCE whose length has two octets: every certificate.
  if (tag !== 0x30 || form !== 0x82) return bytes;
  const end = 4 + high * 256 + low;
  const fill = bytes.subarray(end);
  return fill.every((byte) => byte === fill[0] && (byte === 0 || byte === 0xff)) ? bytes.subarray(0, end) : bytes;
}

/** The problem continues a sentence about the file. */
function keyIn(bytes: Uint8Array): Result<Found, string> {
  const text = Buffer.from(bytes).toString('latin1');
  if (text.includes('-----BEGIN ')) return keyInPem(text);
  const shape = (childrenOf(elementIn(bytes), derTag.sequence) ?? []).map(({ tag }) => tag);
  const is = (...tags: readonly number[]) => shape.length === tags.length && tags.every((tag, i) => shape[i] === tag);
  // RFC 5280 §4.1
  if (is(derTag.sequence, derTag.sequence, derTag.bitString)) return success(certificate(bytes));
  if (is(derTag.sequence, derTag.bitString)) return success({ form: 'public key', kind: 'spki', der: bytes });
  return keyInPublicArea(bytes);
}

function certificate(der: Uint8Array): Found {
  return { form: 'certificate', kind: 'cert', der };
}

function keyInPem(text: string): Result<Found, string> {
  const [certificates, keys] = [pemBlocks(text, 'CERTIFICATE'), pemBlocks(text, 'PUBLIC KEY')];
  const [block, ...others] = [...certificates, ...keys];
  if (block === undefined) return failure('has no certificate and no public key');
  // Which one is the endorsement key, and which an issuer, cannot be told from their order.
  if (others.length > 0)
    return failure(`has ${others.length + 1} certificates or public keys: leave only the endorsement key`);
  const decoded = decodePem(Buffer.from(block), [certificates.length === 1 ? 'CERTIFICATE' : 'PUBLIC KEY']);
  const der = decoded.ok ? decoded.value[0]?.content : undefined;
  if (der === undefined) return failure('has a PEM block that is not base64');
  return success(certificates.length === 1 ? certificate(der) : { form: 'public key', kind: 'spki', der });
}

/** TPMT_PUBLIC, or the same behind its size (TPM2B_PUBLIC): TPM 2.0 Part 2, §12.2.4, §12.2.5. */
function keyInPublicArea(bytes: Uint8Array): Result<Found, string> {
  const isSized = bytes.length > 2 && Buffer.from(bytes).readUInt16BE() === bytes.length - 2;
  const area = decodePublicArea(isSized ? bytes.subarray(2) : bytes);
  if (!area.ok) return failure('is no form of a public key that this command knows');
  // Of another key the machine would have a name that its TPM never proves, or that ends with the owner's hierarchy.
  if (!isEndorsementKey(area.value))
    return failure(
      'is a key of a TPM, but not its endorsement key: that one is restricted, decrypts, does not sign, and has a policy',
    );
  const key = publicKeyOf(area.value.key);
  if (!key.ok) return failure(key.problem);
  const der = new Uint8Array(key.value.export({ type: 'spki', format: 'der' }));
  return success({ form: 'public area of a TPM', kind: 'spki', der });
}

/** TCG's EK Credential Profile, Default EK Templates: a storage key has all of it but the policy. */
function isEndorsementKey({ attributes, authPolicy }: PublicArea): boolean {
  const has = (bit: number) => (attributes & bit) !== 0;
  const isParent = has(attribute.restricted) && has(attribute.decrypt) && !has(attribute.sign);
  return isParent && has(attribute.adminWithPolicy) && authPolicy.length > 0;
}
