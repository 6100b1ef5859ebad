/**
 * The DATA block of tpm evidence (docs/attestation/tpm.md):
 *
 *   { "v": 1, "ek": { "cert": base64 of DER } or { "spki": base64 of DER }, "ak": base64 of TPMT_PUBLIC,
 *     "quote": { "attest": base64 of TPMS_ATTEST, "sig": base64 of TPMT_SIGNATURE, "pcrs": { "0": hex, … }?,
 *       "events": { "0": base64 of SHA-256 digests in their order, … }? },
 *     "activation": { "challenge": base64url, "proof": base64 }?, "nonce": text? }
 *
 * Nothing in it is secret, and nothing in it is worth anything elsewhere: a quote that holds B is evidence for one request only.
 */
import { checkKeys, readEvidence } from '../../encoding/strict-json.ts';
import { isObject } from '../../encoding/json-object.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';

/** What is known of the provider before it is loaded. */
export const tpmFacts = { name: 'tpm', versions: ['tpm/v1'], secure: true, provesHardware: true } as const;

/** What every evidence with a TPM holds. The provider knows where the endorsement key comes from. */
export interface DeviceEvidence {
  /** TPMT_PUBLIC. */
  readonly attestationKey: Uint8Array;
  readonly quote: QuoteEvidence;
  readonly activation?: Activation;
  readonly nonce: string;
}

export interface QuoteEvidence {
  /** TPMS_ATTEST. */
  readonly attest: Uint8Array;
  /** TPMT_SIGNATURE. */
  readonly signature: Uint8Array;
  /** Values of the SHA-256 bank by PCR, ascending. Absent: not sent. */
  readonly pcrs?: PcrValues;
  /** What the sender's firmware says it measured, by PCR. Nothing proves it unless it leads to the quoted value. */
  readonly events: PcrEvents;
}

export type PcrValues = ReadonlyMap<number, Uint8Array>;
/** Digests of 32 bytes. */
export type PcrEvents = ReadonlyMap<number, readonly Uint8Array[]>;

/** The answer to a challenge (challenge.ts). */
export interface Activation {
  readonly challenge: Uint8Array;
  readonly proof: Uint8Array;
}

export interface TpmEvidence extends DeviceEvidence {
  readonly endorsementKey: { readonly kind: 'cert' | 'spki'; readonly der: Uint8Array };
}

type Fields = Readonly<Record<string, unknown>>;

/** The keys besides `v` that readDeviceEvidence reads. */
export const deviceKeys = { required: ['ak', 'quote'], optional: ['activation', 'nonce'] } as const;

/** The problem completes `the attestation data …`. */
export function readTpmEvidence(data: Uint8Array): Result<TpmEvidence, string> {
  const read = readEvidence(data, { required: ['v', 'ek', ...deviceKeys.required], optional: deviceKeys.optional });
  if (!read.ok) return read;
  const { v, ek } = read.value;
  if (v !== 1) return failure('is not of tpm/v1');
  const endorsementKey = readEndorsementKey(ek);
  if (endorsementKey === undefined) return failure('has an endorsement key that is neither a cert nor a spki');
  const device = readDeviceEvidence(read.value);
  return device.ok ? success({ ...device.value, endorsementKey }) : device;
}

function readEndorsementKey(ek: unknown): TpmEvidence['endorsementKey'] | undefined {
  if (!isObject(ek)) return undefined;
  const [[kind, text] = [], ...more] = Object.entries(ek);
  const der = base64(text);
  if ((kind !== 'cert' && kind !== 'spki') || der === undefined || more.length > 0) return undefined;
  return { kind, der };
}

export function readDeviceEvidence({ ak, quote, activation, nonce = '' }: Fields): Result<DeviceEvidence, string> {
  const attestationKey = base64(ak);
  if (attestationKey === undefined) return failure('has an attestation key that is not base64');
  if (typeof nonce !== 'string' || !/^[A-Za-z0-9_-]{0,128}$/.test(nonce)) return failure('has an invalid nonce');
  const quoted = readQuote(quote);
  if (!quoted.ok) return quoted;
  if (activation === undefined) return success({ attestationKey, quote: quoted.value, nonce });
  const answered = readActivation(activation);
  if (answered === undefined) return failure('has an activation that is not a challenge and a proof');
  return success({ attestationKey, quote: quoted.value, activation: answered, nonce });
}

function readQuote(quote: unknown): Result<QuoteEvidence, string> {
  const read = isObject(quote)
    ? checkKeys(quote, { required: ['attest', 'sig'], optional: ['pcrs', 'events'] })
    : failure('is not an object');
  if (!read.ok) return failure(`has a quote that ${read.problem}`);
  const attest = base64(read.value.attest);
  const signature = base64(read.value.sig);
  if (attest === undefined || signature === undefined) return failure('has a quote that is not base64');
  const { pcrs: sentPcrs = {}, events: sentEvents = {} } = read.value;
  const pcrs = readByPcr(sentPcrs, readDigest);
  if (pcrs === undefined) return failure('has PCR values that are not hex of SHA-256 by PCR number');
  const events = readByPcr(sentEvents, readDigests);
  if (events === undefined) return failure('has events that are not base64 of SHA-256 digests by PCR number');
  return success({ attest, signature, ...(read.value.pcrs === undefined ? {} : { pcrs }), events });
}

function readByPcr<T>(sent: unknown, readOne: (value: unknown) => T | undefined): ReadonlyMap<number, T> | undefined {
  if (!isObject(sent)) return undefined;
  const values = new Map<number, T>();
  // JavaScript lists integer keys in ascending order.
  for (const [pcr, value] of Object.entries(sent)) {
    const read = /^(\d|[12]\d|3[01])$/.test(pcr) ? readOne(value) : undefined;
    if (read === undefined) return undefined;
    values.set(Number(pcr), read);
  }
  return values;
}

function readDigest(value: unknown): Uint8Array | undefined {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value) ? Buffer.from(value, 'hex') : undefined;
}

function readDigests(value: unknown): readonly Uint8Array[] | undefined {
  const bytes = base64(value);
  if (bytes === undefined || bytes.length % 32 !== 0) return undefined;
  return Array.from({ length: bytes.length / 32 }, (_, index) => bytes.subarray(index * 32, index * 32 + 32));
}

function readActivation(activation: unknown): Activation | undefined {
  if (!isObject(activation)) return undefined;
  const read = checkKeys(activation, { required: ['challenge', 'proof'] });
  if (!read.ok) return undefined;
  const challenge = base64(read.value.challenge, 'base64url');
  const proof = base64(read.value.proof);
  return challenge === undefined || proof === undefined ? undefined : { challenge, proof };
}

/** Only the one encoding that Node writes, without line breaks. */
function base64(text: unknown, encoding: 'base64' | 'base64url' = 'base64'): Buffer | undefined {
  if (typeof text !== 'string' || text === '') return undefined;
  const bytes = Buffer.from(text, encoding);
  return bytes.toString(encoding) === text ? bytes : undefined;
}
