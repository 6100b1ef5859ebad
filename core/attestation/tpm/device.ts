/**
 * What the quote of a request says about the TPM behind it, and whether the request answers a challenge. Shared by all providers
 * with a TPM; they differ in who names the endorsement key.
 */
import { violated } from '../../outcome/outcome.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Device, Evidence, Examined } from '../evidence/provider.ts';
import { decodeAttestationKey } from './attestation-key.ts';
import type { AttestationKey } from './attestation-key.ts';
import { checkChallenge, isProof, newChallenge, secretMessage } from './challenge.ts';
import type { EndorsementKey } from './endorsement-key.ts';
import type { Activation, DeviceEvidence } from './evidence.ts';
import { makeCredential } from './make-credential.ts';
import type { TpmPorts } from './ports.ts';
import { checkPcrs } from './pcrs.ts';
import { verifyQuote } from './quote.ts';
import type { VerifiedQuote } from './quote.ts';

export interface ExaminedDevice {
  readonly attestationKey: AttestationKey;
  readonly quote: VerifiedQuote;
  /** The 32 bytes of B. */
  readonly binding: Uint8Array;
  readonly activation?: Activation;
  readonly once: Examined['once'];
}

/** All checks that need neither the endorsement key nor the network. Never throws. */
export function examineDevice(
  sent: DeviceEvidence,
  { binding: bindingOf, pcrs, now }: Pick<Evidence, 'binding' | 'pcrs' | 'now'>,
): Result<ExaminedDevice, Violations> {
  const attestationKey = decodeAttestationKey(sent.attestationKey);
  if (!attestationKey.ok) return invalid(`the attestation key ${attestationKey.problem}`);
  const binding = Buffer.from(bindingOf(sent.nonce), 'hex');
  const quote = verifyQuote(sent.quote, attestationKey.value, binding);
  if (!quote.ok) return invalid(`the quote ${quote.problem}`);
  const unwanted = pcrs === undefined ? undefined : checkPcrs(pcrs, quote.value);
  if (unwanted !== undefined) return violated('IdentityNotAllowed', unwanted);

  const examined = { attestationKey: attestationKey.value, quote: quote.value, binding };
  const { activation } = sent;
  if (activation === undefined) return success({ ...examined, once: [] });
  const challenge = checkChallenge(activation.challenge, now);
  if (!challenge.ok) return invalid(`the challenge ${challenge.problem}`);
  const id = Buffer.from(activation.challenge).toString('hex');
  const once = [{ kind: 'challenge', id, expiresAt: challenge.value.expiresAt }];
  return success({ ...examined, activation, once });
}

/** The device, if its answer to a challenge is right or absent. Throws if the challenge key does not answer. */
export async function verifyDevice(
  { attestationKey, quote, binding, activation }: ExaminedDevice,
  endorsementKey: EndorsementKey,
  {
    audience,
    now,
    ports,
  }: { readonly audience: string; readonly now: number; readonly ports: Omit<TpmPorts, 'findMachine'> },
): Promise<Result<Device, Violations>> {
  const { name } = attestationKey;
  const { clock, resetCount } = quote.clock;
  const secretOf = (challenge: Uint8Array) =>
    ports.challengeKey.mac(secretMessage({ audience, challenge, endorsementKey, attestationKeyName: name }));
  if (activation !== undefined) {
    const secret = await secretOf(activation.challenge);
    if (!isProof(activation.proof, secret, binding))
      return invalid('the answer to the challenge is not of this TPM for this request');
  }
  return success({
    endorsementKey: endorsementKey.spki,
    state: { akName: Buffer.from(name).toString('hex'), resetCount, clock },
    activated: activation !== undefined,
    challenge: async () => {
      const challenge = newChallenge(now, (count) => ports.randomBytes(count));
      const secret = await secretOf(challenge);
      const credential = makeCredential(endorsementKey, name, secret, (count) => ports.randomBytes(count));
      return JSON.stringify({
        v: 1,
        challenge: Buffer.from(challenge).toString('base64url'),
        credential: Buffer.from(credential).toString('base64'),
      });
    },
  });
}

export function invalid(message: string): Result<never, Violations> {
  return violated('AttestationInvalid', message);
}
