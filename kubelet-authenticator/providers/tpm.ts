/**
 * Evidence of a machine with a TPM 2.0 (docs/attestation/tpm.md): a quote by an attestation key (AK) over the binding digest. An
 * approver that does not know the AK answers with a challenge, which only the TPM with AK and endorsement key (EK) can open.
 */
import { createHash, createHmac } from 'node:crypto';
import type { EndorsementKeyKind } from '../settings/settings.ts';
import { evidenceVersions } from '../settings/settings.ts';
import type { Challenge, EvidenceQuestion, NodeProviderPort } from './provider.ts';
import { activateCredential, akContext, createAttestationKey, readEndorsementKey } from './tpm-keys.ts';
import type { EndorsementKey } from './tpm-keys.ts';
import { eventLogFile, readEvents } from './tpm-events.ts';
import { TpmError } from './tpm-tools.ts';
import type { Tpm } from './tpm-tools.ts';

/** A quote does not expire. A challenge does: the approver accepts an answer for two minutes. */
const staleAfterMilliseconds = { quote: 3_600_000, answer: 120_000 } as const;

/** Runs `work` while no other process of this node uses the TPM. */
export type UseTpm = <T>(work: (tpm: Tpm) => Promise<T>) => Promise<T>;

/** Firmware, its configuration, boot loader and Secure Boot state (TCG PC Client Platform Firmware Profile, 2.3.4). */
const pcrs: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];
const digestBytes = 32;

export function tpmProvider(
  useTpm: UseTpm,
  wanted: EndorsementKeyKind | undefined,
  eventLog = eventLogFile,
): NodeProviderPort {
  // Read once in a process: it does not change, and a TPM is slow.
  let endorsementKey: EndorsementKey | undefined;
  const endorsementKeyOf = async (tpm: Tpm) => (endorsementKey ??= await readEndorsementKey(tpm, wanted));
  return {
    versions: evidenceVersions.tpm,
    renews: true,
    answersChallenges: true,

    async describe() {
      const { spki } = await useTpm(endorsementKeyOf);
      // A TPM knows no names: the operator lists them (docs/attestation/tpm.md).
      return { providerId: `tpm:///${createHash('sha256').update(spki).digest('hex')}`, names: [] };
    },

    makeEvidence: (question) =>
      useTpm(async (tpm) => {
        const key = await endorsementKeyOf(tpm);
        const ek = key.certificate === undefined ? { spki: base64(key.spki) } : { cert: base64(key.certificate) };
        const { device, staleAt } = await makeDeviceEvidence(tpm, () => Promise.resolve(key), question, eventLog);
        return { data: JSON.stringify({ v: 1, ek, ...device }), staleAt };
      }),
  };
}

/** What every evidence with a TPM holds, with any source of the endorsement key, which is needed only to answer a challenge. */
export async function makeDeviceEvidence(
  tpm: Tpm,
  endorsementKey: () => Promise<EndorsementKey>,
  { binding, nonce, challenge, refused, now }: EvidenceQuestion,
  eventLog = eventLogFile,
): Promise<{ readonly device: object; readonly staleAt: number }> {
  const digest = Buffer.from(binding(nonce), 'hex');
  const ak = await createAttestationKey(tpm);
  const device = {
    ak: base64(ak),
    quote: { ...(await makeQuote(tpm, digest)), events: refused === true ? readEvents(eventLog, pcrs) : undefined },
    activation: challenge && (await answerChallenge(tpm, await endorsementKey(), challenge, digest)),
    nonce,
  };
  return { device, staleAt: now + staleAfterMilliseconds[challenge === undefined ? 'quote' : 'answer'] };
}

async function makeQuote(tpm: Tpm, digest: Buffer): Promise<object> {
  const what = ['-c', akContext, '-l', `sha256:${pcrs.join(',')}`, '-g', 'sha256', '-q', digest.toString('hex')];
  // The program compares the values with the digest that the TPM signed.
  await tpm.run('tpm2_quote', [...what, '-m', 'attest', '-s', 'sig', '-f', 'tss', '-o', 'pcrs', '-F', 'values']);
  const values = tpm.read('pcrs');
  if (values.length !== pcrs.length * digestBytes)
    throw new TpmError('the TPM has no SHA-256 bank of PCRs: enable it in the firmware');
  const valueOf = (index: number) => values.toString('hex', index * digestBytes, (index + 1) * digestBytes);
  return {
    attest: base64(tpm.read('attest')),
    sig: base64(tpm.read('sig')),
    pcrs: Object.fromEntries(pcrs.map((pcr, index) => [String(pcr), valueOf(index)])),
  };
}

async function answerChallenge(tpm: Tpm, key: EndorsementKey, { challenge, credential }: Challenge, digest: Buffer) {
  const secret = await activateCredential(tpm, key, Buffer.from(credential, 'base64'));
  // The secret itself never leaves this function: each user of the cluster can read requests.
  return { challenge, proof: createHmac('sha256', secret).update(digest).digest('base64') };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
