/**
 * A TPM in memory, for statements that no real TPM makes: wrong fields under a right signature. It shares no code with the
 * product. `test/suites/oracle/software-tpm` shows that a real TPM behaves as this one does when it behaves.
 */
import {
  constants,
  createDecipheriv,
  createHash,
  createHmac,
  diffieHellman,
  createPublicKey,
  generateKeyPairSync,
  privateDecrypt,
  sign,
} from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export const id = {
  sha1: 0x0004,
  sha256: 0x000b,
  sha384: 0x000c,
  sha512: 0x000d,
  null: 0x0010,
  rsassa: 0x0014,
  rsapss: 0x0016,
  ecdsa: 0x0018,
} as const;
const hashNames: Readonly<Record<number, string>> = { 4: 'sha1', 11: 'sha256', 12: 'sha384', 13: 'sha512' };

/** restricted, sign, userWithAuth, sensitiveDataOrigin, fixedParent, fixedTPM */
export const attestationAttributes = 0x00050072;

// ── Structures, TPM 2.0 Part 2 ──────────────────────────────────────────────────────────────────────────────────────

export const u8 = (value: number) => Buffer.of(value);
export const u16 = (value: number) => Buffer.of(value >>> 8, value & 0xff);
export const u32 = (value: number) => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)]);
export const u64 = (value: bigint) => Buffer.from(value.toString(16).padStart(16, '0'), 'hex');
export const tpm2b = (bytes: Uint8Array) => Buffer.concat([u16(bytes.length), bytes]);

interface AreaOptions {
  readonly attributes?: number;
  readonly nameAlg?: number;
  /** TPMT_SYM_DEF_OBJECT. */
  readonly symmetric?: Buffer;
  readonly scheme?: number;
  readonly hash?: number;
}

/** TPMT_PUBLIC of a key. */
export function publicArea(key: KeyObject, options: AreaOptions = {}): Buffer {
  const jwk = key.export({ format: 'jwk' });
  const bytes = (text = '') => Buffer.from(text, 'base64url');
  const isRsa = jwk.kty === 'RSA';
  const { attributes = attestationAttributes, nameAlg = id.sha256, symmetric = u16(id.null) } = options;
  const { scheme = isRsa ? id.rsassa : id.ecdsa, hash = id.sha256 } = options;
  return Buffer.concat([
    u16(isRsa ? 1 : 0x23),
    u16(nameAlg),
    u32(attributes),
    tpm2b(Buffer.of()),
    symmetric,
    scheme === id.null ? u16(scheme) : Buffer.concat([u16(scheme), u16(hash)]),
    isRsa
      ? Buffer.concat([u16(bytes(jwk.n).length * 8), u32(0), tpm2b(bytes(jwk.n))])
      : Buffer.concat([u16(jwk.crv === 'P-384' ? 4 : 3), u16(id.null), tpm2b(bytes(jwk.x)), tpm2b(bytes(jwk.y))]),
  ]);
}

export function nameOf(area: Buffer): Buffer {
  const nameAlg = area.readUInt16BE(2);
  const digest = createHash(hashNames[nameAlg] ?? '').update(area);
  return Buffer.concat([u16(nameAlg), digest.digest()]);
}

export interface AttestOptions {
  readonly magic?: number;
  readonly type?: number;
  readonly extraData: Uint8Array;
  readonly clock?: bigint;
  readonly resetCount?: number;
  readonly safe?: number;
  readonly body: Buffer;
}

/** TPMS_ATTEST. */
export function attest(options: AttestOptions): Buffer {
  const { magic = 0xff544347, type = 0x8018, extraData, clock = 5_000n, resetCount = 3, safe = 1, body } = options;
  const clockInfo = [u64(clock), u32(resetCount), u32(0), u8(safe)];
  const signer = tpm2b(Buffer.concat([u16(id.sha256), Buffer.alloc(32, 9)]));
  return Buffer.concat([u32(magic), u16(type), signer, tpm2b(extraData), ...clockInfo, u64(0n), body]);
}

/** A TPML_PCR_SELECTION and a TPM2B_DIGEST. */
export function quoteBody(selections: readonly (readonly [bank: number, pcrs: readonly number[]])[], digest: Buffer) {
  const parts = selections.map(([bank, pcrs]) => {
    const bits = Buffer.alloc(3);
    for (const pcr of pcrs) bits[pcr >> 3] = (bits[pcr >> 3] ?? 0) | (1 << (pcr & 7));
    return Buffer.concat([u16(bank), u8(3), bits]);
  });
  return Buffer.concat([u32(selections.length), ...parts, tpm2b(digest)]);
}

/** TPMT_SIGNATURE. */
export function signature(key: KeyObject, scheme: number, hash: number, signed: Uint8Array): Buffer {
  const name = hashNames[hash];
  const head = Buffer.concat([u16(scheme), u16(hash)]);
  if (scheme === id.ecdsa) {
    const raw = sign(name, signed, { key, dsaEncoding: 'ieee-p1363' });
    return Buffer.concat([head, tpm2b(raw.subarray(0, raw.length / 2)), tpm2b(raw.subarray(raw.length / 2))]);
  }
  const padding = scheme === id.rsapss ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
  return Buffer.concat([head, tpm2b(sign(name, signed, { key, padding }))]);
}

// ── A TPM ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export type EkKind = 'RSA-2048' | 'P-256' | 'P-384';
export type AkKind = 'P-256' | 'P-384' | 'RSA-2048' | 'RSA-1024';

export interface Ak {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly scheme: number;
  readonly hash: number;
  readonly area: Buffer;
}

export function createAk(kind: AkKind, options: AreaOptions = {}): Ak {
  const { privateKey, publicKey } = createKey(kind);
  const { scheme = kind.startsWith('RSA') ? id.rsassa : id.ecdsa, hash = id.sha256 } = options;
  return { privateKey, publicKey, scheme, hash, area: publicArea(publicKey, { ...options, scheme, hash }) };
}

export interface Quoted {
  readonly attest: Buffer;
  readonly sig: Buffer;
}

/** Values of the SHA-256 bank by PCR. */
export type Pcrs = ReadonlyMap<number, Buffer>;

export interface QuoteOptions extends Omit<Partial<AttestOptions>, 'body'> {
  /** Instead of sha256 and all PCRs. */
  readonly selections?: readonly (readonly [bank: number, pcrs: readonly number[]])[];
  readonly digest?: Buffer;
  readonly body?: Buffer;
}

export function quote(ak: Ak, extraData: Uint8Array, pcrs: Pcrs, options: QuoteOptions = {}): Quoted {
  const values = createHash(hashNames[ak.hash] ?? '').update(Buffer.concat([...pcrs.values()]));
  const { selections = [[id.sha256, [...pcrs.keys()]]], digest = values.digest() } = options;
  const bytes = attest({ extraData, ...options, body: options.body ?? quoteBody(selections, digest) });
  return { attest: bytes, sig: signature(ak.privateKey, ak.scheme, ak.hash, bytes) };
}

export interface Ek {
  readonly kind: EkKind;
  readonly privateKey: KeyObject;
  /** DER. */
  readonly spki: Buffer;
}

export function createEk(kind: EkKind): Ek {
  const { privateKey, publicKey } = createKey(kind);
  return { kind, privateKey, spki: publicKey.export({ type: 'spki', format: 'der' }) };
}

function createKey(kind: AkKind | EkKind): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return kind.startsWith('RSA')
    ? generateKeyPairSync('rsa', { modulusLength: Number(kind.slice(4)) })
    : generateKeyPairSync('ec', { namedCurve: kind });
}

/** TPM2_ActivateCredential (Part 3, §12.5): the secret in the file, or an error. `name`: of the attestation key that is loaded. */
export function activateCredential({ kind, privateKey }: Ek, name: Buffer, file: Buffer): Buffer {
  if (file.subarray(0, 8).toString('hex') !== 'badcc0de00000001') throw new Error('not a credential');
  const [idObject, encryptedSeed, rest] = readSized(file.subarray(8), 2);
  if (rest?.length !== 0) throw new Error('bytes behind the credential');
  const [mac, encrypted] = readSized(idObject, 1);
  const [hash, aesBits] = kind === 'P-384' ? (['sha384', 256] as const) : (['sha256', 128] as const);
  const seed =
    kind === 'RSA-2048' ? decryptSeed(privateKey, encryptedSeed) : agreeSeed(privateKey, hash, encryptedSeed);
  const digestBits = hash === 'sha384' ? 384 : 256;
  const macKey = kdfA(hash, seed, 'INTEGRITY', Buffer.of(), digestBits);
  if (!createHmac(hash, macKey).update(encrypted).update(name).digest().equals(mac))
    throw new Error('TPM_RC_INTEGRITY');
  const key = kdfA(hash, seed, 'STORAGE', name, aesBits);
  const decipher = createDecipheriv(`aes-${aesBits}-cfb`, key, Buffer.alloc(16));
  const [secret, more] = readSized(Buffer.concat([decipher.update(encrypted), decipher.final()]), 1);
  if (more.length > 0) throw new Error('bytes behind the secret');
  return secret;
}

/** As many TPM2B as asked for, and what is behind them. */
function readSized(bytes: Buffer, count: 1): readonly [Buffer, Buffer];
function readSized(bytes: Buffer, count: 2): readonly [Buffer, Buffer, Buffer];
function readSized(bytes: Buffer, count: number): readonly Buffer[] {
  const end = 2 + bytes.readUInt16BE(0);
  const [first, rest] = [bytes.subarray(2, end), bytes.subarray(end)];
  return count === 1 ? [first, rest] : [first, ...readSized(rest, 1)];
}

function decryptSeed(key: KeyObject, encrypted: Buffer): Buffer {
  const padding = {
    padding: constants.RSA_PKCS1_OAEP_PADDING,
    oaepHash: 'sha256',
    oaepLabel: Buffer.from('IDENTITY\0'),
  };
  return privateDecrypt({ key, ...padding }, encrypted);
}

function agreeSeed(privateKey: KeyObject, hash: string, encrypted: Buffer): Buffer {
  const [x, y, rest] = readSized(encrypted, 2);
  if (rest.length > 0) throw new Error('bytes behind the point');
  const { crv, x: own } = privateKey.export({ format: 'jwk' });
  const jwk = { kty: 'EC', crv: crv ?? '', x: x.toString('base64url'), y: y.toString('base64url') };
  const shared = diffieHellman({ privateKey, publicKey: createPublicKey({ key: jwk, format: 'jwk' }) });
  const parts = [u32(1), shared, Buffer.from('IDENTITY\0'), x, Buffer.from(own ?? '', 'base64url')];
  return createHash(hash).update(Buffer.concat(parts)).digest();
}

/** Part 1, §11.4.10.2 */
function kdfA(hash: string, key: Buffer, label: string, contextU: Buffer, bits: number): Buffer {
  let made = Buffer.of();
  for (let counter = 1; made.length * 8 < bits; counter++) {
    const block = Buffer.concat([u32(counter), Buffer.from(`${label}\0`), contextU, u32(bits)]);
    made = Buffer.concat([made, createHmac(hash, key).update(block).digest()]);
  }
  return made.subarray(0, bits / 8);
}
