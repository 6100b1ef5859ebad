/**
 * MakeCredential (TPM 2.0 Part 3, §12.6; Part 1, §24): encrypts a secret so that only the TPM with this endorsement key recovers it,
 * and only if a key with exactly this name is loaded in it (TPM2_ActivateCredential).
 *
 * An endorsement key is sent without its public area, so its name algorithm and its cipher are those of the default template
 * for its kind (TCG EK Credential Profile, templates L-1, L-2 and H-3).
 */
import { createCipheriv, createECDH, createHash, createHmac, constants, publicEncrypt } from 'node:crypto';
import type { CurveName } from './structures/algorithms.ts';
import type { EndorsementKey, EndorsementKeyKind } from './endorsement-key.ts';
import { sized } from './structures/public-area.ts';
import { eccKeyOf } from './structures/public-key.ts';

interface Template {
  readonly hash: 'sha256' | 'sha384';
  readonly aesBits: 128 | 256;
}

const templates: Readonly<Record<EndorsementKeyKind, Template>> = {
  'RSA-2048': { hash: 'sha256', aesBits: 128 },
  'P-256': { hash: 'sha256', aesBits: 128 },
  'P-384': { hash: 'sha384', aesBits: 256 },
};
const digestBytes = { sha256: 32, sha384: 48 } as const;
const opensslCurve = { 'P-256': 'prime256v1', 'P-384': 'secp384r1' } as const;

/** What tpm2-tools write before a credential: magic number and version. */
const fileHeader = Buffer.from('badcc0de00000001', 'hex');

/** `secret`: at most as long as a digest of the template. Returns the file that tpm2_activatecredential reads. */
export function makeCredential(
  endorsementKey: EndorsementKey,
  attestationKeyName: Uint8Array,
  secret: Uint8Array,
  randomBytes: (count: number) => Uint8Array,
): Uint8Array {
  const { hash, aesBits } = templates[endorsementKey.kind];
  const { seed, encryptedSeed } = shareSeed(endorsementKey, hash, randomBytes);

  // Part 1, §24.5: the encrypted identity, then its integrity over the name of the key that has to be loaded.
  const symmetricKey = kdfA(hash, seed, 'STORAGE', attestationKeyName, aesBits);
  const cipher = createCipheriv(`aes-${aesBits}-cfb`, symmetricKey, Buffer.alloc(16));
  const encrypted = Buffer.concat([cipher.update(sized(secret)), cipher.final()]);
  const macKey = kdfA(hash, seed, 'INTEGRITY', Buffer.of(), digestBytes[hash] * 8);
  const mac = createHmac(hash, macKey).update(encrypted).update(attestationKeyName).digest();

  // TPM2B_ID_OBJECT (Part 2, §12.4.3), TPM2B_ENCRYPTED_SECRET (§11.4.3)
  const idObject = Buffer.concat([sized(mac), encrypted]);
  return Buffer.concat([fileHeader, sized(idObject), sized(encryptedSeed)]);
}

interface SharedSeed {
  readonly seed: Uint8Array;
  readonly encryptedSeed: Uint8Array;
}

function shareSeed(
  { kind, key }: EndorsementKey,
  hash: Template['hash'],
  randomBytes: (count: number) => Uint8Array,
): SharedSeed {
  if (kind === 'RSA-2048') {
    // Part 1, §B.10.3
    const seed = randomBytes(digestBytes[hash]);
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: hash, oaepLabel: Buffer.from('IDENTITY\0') };
    return { seed, encryptedSeed: publicEncrypt({ key, ...padding }, seed) };
  }
  const ecc = eccKeyOf(key);
  if (!ecc.ok) throw new Error(`an endorsement key on ${kind} ${ecc.problem}`);
  return shareByEcdh(ecc.value, hash);
}

/** Part 1, §C.6.3 */
function shareByEcdh(
  { curve, x, y }: { readonly curve: CurveName; readonly x: Uint8Array; readonly y: Uint8Array },
  hash: Template['hash'],
): SharedSeed {
  const ephemeral = createECDH(opensslCurve[curve]);
  const point = ephemeral.generateKeys();
  const ephemeralX = point.subarray(1, 1 + x.length);
  const ephemeralY = point.subarray(1 + x.length);
  const shared = ephemeral.computeSecret(Buffer.concat([Buffer.of(4), x, y]));
  return {
    seed: kdfE(hash, shared, 'IDENTITY', ephemeralX, x),
    encryptedSeed: Buffer.concat([sized(ephemeralX), sized(ephemeralY)]),
  };
}

/** Part 1, §11.4.10.2, for keys that are not longer than one digest. `bits`: a multiple of 8. */
function kdfA(hash: Template['hash'], key: Uint8Array, label: string, context: Uint8Array, bits: number): Buffer {
  const mac = createHmac(hash, key).update(uint32(1)).update(`${label}\0`).update(context).update(uint32(bits));
  return mac.digest().subarray(0, bits / 8);
}

/** Part 1, §11.4.10.3, for a seed as long as one digest. */
function kdfE(hash: Template['hash'], shared: Uint8Array, use: string, u: Uint8Array, v: Uint8Array): Buffer {
  return createHash(hash).update(uint32(1)).update(shared).update(`${use}\0`).update(u).update(v).digest();
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(0, 0, value >> 8, value & 0xff);
}
