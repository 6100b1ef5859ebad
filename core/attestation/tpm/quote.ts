/**
 * The quote of a request: the TPM's statement about its PCRs and its clock, signed by the attestation key over the binding digest.
 */
import { hash } from 'node:crypto';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AttestationKey } from './attestation-key.ts';
import type { PcrEvents, PcrValues, QuoteEvidence } from './evidence.ts';
import { decodeAttest } from './structures/attest.ts';
import type { ClockInfo, Quote } from './structures/attest.ts';
import { decodeSignature, verifySignature } from './structures/signature.ts';

export interface VerifiedQuote {
  readonly clock: ClockInfo;
  /** The values that the quote proves; absent if they were not sent. */
  readonly pcrs?: PcrValues;
  /** As sent: the quote proves nothing about them. */
  readonly events: PcrEvents;
}

/** `binding`: the 32 bytes of B. The problem completes `the quote …`. */
export function verifyQuote(
  sent: QuoteEvidence,
  attestationKey: AttestationKey,
  binding: Uint8Array,
): Result<VerifiedQuote, string> {
  const attest = decodeAttest(sent.attest);
  if (!attest.ok) return attest;
  if (attest.value.kind !== 'quote') return failure('is a certification');
  const signature = decodeSignature(sent.signature);
  if (!signature.ok) return failure(`has a signature that ${signature.problem}`);

  const { scheme, area, key } = attestationKey;
  if (signature.value.scheme.name !== scheme.name || signature.value.scheme.hash !== scheme.hash)
    return failure('is signed with another scheme than that of the attestation key');
  if (!verifySignature(signature.value, area.key, key, sent.attest))
    return failure('is not signed with the attestation key');
  // A quote for another request, or one that the sender copied.
  if (Buffer.compare(attest.value.extraData, binding) !== 0) return failure('is not for this request');

  const { clock } = attest.value;
  const { events } = sent;
  if (sent.pcrs === undefined) return success({ clock, events });
  const problem = checkValues(attest.value, sent.pcrs, attestationKey);
  return problem === undefined ? success({ clock, pcrs: sent.pcrs, events }) : failure(problem);
}

/** The quote holds a digest; the values beside it must be exactly those from which the TPM computed it. */
function checkValues(quote: Quote, values: PcrValues, { scheme }: AttestationKey): string | undefined {
  const [selection, ...more] = quote.selections;
  if (selection?.bank !== 'sha256' || more.length > 0) return 'is not of the SHA-256 bank alone';
  if (selection.pcrs.join() !== [...values.keys()].join()) return 'is of other PCRs than were sent';
  const digest = hash(scheme.hash, Buffer.concat([...values.values()]), 'buffer');
  return digest.equals(quote.pcrDigest) ? undefined : 'is of other PCR values than were sent';
}
