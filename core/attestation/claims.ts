/** Builds the claim of an admitted request: the machine's record, the spent evidence, and the record that it retires. */
import type { Claim, IdentityRecord, IdentityWrite } from '../ports/attestation-store.ts';
import type { AttestQuestion } from './attest-question.ts';
import type { Look } from './evidence/last-description.ts';
import type { Device, Examined } from './evidence/provider.ts';
import { firstRecord, seenRecord, usedRecord } from './first-use.ts';
import type { FirstUse, Use } from './first-use.ts';
import { ulid } from './records/ulid.ts';

/** An admission always writes a record. attest.ts adds the verdict. */
export type AdmissionClaim = Omit<Claim, 'verdict'> & {
  readonly identity: Exclude<IdentityWrite, { readonly kind: 'none' }>;
};

export function firstUseClaim(
  question: AttestQuestion,
  examined: Examined,
  { machine: { providerId, startedAt, device }, described }: Look,
  firstUse: FirstUse,
  random: { randomBytes(count: number): Uint8Array },
): AdmissionClaim {
  const { nodeName, spkiSha256, uid, now } = question;
  const { identity } = examined;
  const use: Use = { identity, nodeName, spkiSha256, providerId, startedAt, described, ...stateOf(device), uid, now };
  const claim = { once: spentEvidence(question, examined), newAddresses: [], audit: [] };
  switch (firstUse.kind) {
    case 'first':
      return { ...claim, identity: { kind: 'create', record: firstRecord(use) } };
    case 'takeover': {
      const { holder } = firstUse;
      const passing = { ...claim, identity: { kind: 'create', record: firstRecord(use) }, retire: holder } as const;
      // The retirement of a holder that was retired before has its audit item.
      if (holder.state === 'retired') return passing;
      const retired = {
        id: ulid(now, random.randomBytes(10)),
        at: now,
        by: 'attest',
        action: 'retire',
        subject: holder.identity,
        nodeName,
        reason: `its machine is gone; the name passed to ${identity}`,
        before: holder,
      } as const;
      return { ...passing, audit: [retired] };
    }
    case 'repeat':
    case 'renewal':
    case 'restart':
      return { ...claim, identity: { kind: 'replace', record: usedRecord(firstUse.record, use) } };
  }
}

export function servingClaim(
  { uid, now }: AttestQuestion,
  record: IdentityRecord,
  { machine: { startedAt, device }, described }: Look,
  newAddresses: readonly string[],
  once: Claim['once'],
): AdmissionClaim {
  const used = seenRecord(record, { startedAt, described, ...stateOf(device), uid, now });
  const identity = { kind: 'replace', record: { ...used, addresses: [...record.addresses, ...newAddresses] } } as const;
  return { once, identity, newAddresses, audit: [] };
}

function stateOf(device: Device | undefined): Pick<IdentityRecord, 'device'> {
  return device === undefined ? {} : { device: device.state };
}

/** The keys of the evidence, with the request bytes that alone may use it again. */
export function spentEvidence({ requestSha256 }: AttestQuestion, examined: Examined | undefined): Claim['once'] {
  return (examined?.once ?? []).map((key) => ({ ...key, requestSha256 }));
}
