/**
 * What a TPM states and signs about itself (TPMS_ATTEST, TPM 2.0 Part 2, §10.12.12): a quote of its PCRs, or the certification of a
 * key. A restricted key signs nothing else that begins with the magic number, so data from outside cannot pose as a statement.
 */
import type { Result } from '../../../outcome/result.ts';
import { mostDigestBytes, mostNameBytes, readHash } from './algorithms.ts';
import type { HashName } from './algorithms.ts';
import { decodeStructure } from './structure-reader.ts';
import type { StructureReader } from './structure-reader.ts';

export type Attest = Quote | Certification;

interface Statement {
  /** What the caller of the TPM wanted signed with it, up to 66 bytes. */
  readonly extraData: Uint8Array;
  readonly clock: ClockInfo;
}

/** TPMS_CLOCK_INFO (§10.11.1). */
export interface ClockInfo {
  /** Milliseconds that the TPM was powered, never reset except by clearing the TPM. */
  readonly clock: number;
  /** TPM resets since the TPM was cleared. */
  readonly resetCount: number;
  /** No value of `clock` greater than this one was reported before: false after a power loss without an orderly shutdown. */
  readonly safe: boolean;
}

/** TPMS_QUOTE_INFO (§10.12.4). */
export interface Quote extends Statement {
  readonly kind: 'quote';
  readonly selections: readonly PcrSelection[];
  /** Of the values in the order of `selections`, each ascending, by the hash of the signing key's scheme (Part 3, TPM2_Quote). */
  readonly pcrDigest: Uint8Array;
}

/** TPMS_PCR_SELECTION (§10.6.2). */
export interface PcrSelection {
  readonly bank: HashName;
  /** Ascending. */
  readonly pcrs: readonly number[];
}

/** TPMS_CERTIFY_INFO (§10.12.3). The qualified name depends on parents that nothing here proves, so it is not used. */
export interface Certification extends Statement {
  readonly kind: 'certification';
  /** The name of the certified key, as objectName computes it. */
  readonly name: Uint8Array;
}

/** TPM_GENERATED_VALUE (§6.2): ff 'TCG'. */
const magic = 0xff544347;
/** TPM_ST (§6.9). */
const statement = { certify: 0x8017, quote: 0x8018 } as const;
/** One for each bank (§10.9.7); TPMs have up to five. */
const mostSelections = 16;
/** A quote of 16 banks is smaller. */
const mostBytes = 512;

/** The problem completes `the attestation …`. */
export function decodeAttest(bytes: Uint8Array): Result<Attest, string> {
  return decodeStructure(bytes, mostBytes, (reader): Attest => {
    if (reader.uint32() !== magic) return reader.refuse('does not begin with the magic number of a TPM');
    const type = reader.uint16();
    if (type !== statement.quote && type !== statement.certify)
      return reader.refuse('is neither a quote nor a certification');
    // Names the key that signed. An attacker who makes such bytes can write any name, so the signature alone counts.
    reader.sized(mostNameBytes, 'a signer');
    const extraData = reader.sized(mostNameBytes, 'extraData');
    const clock = readClock(reader);
    // firmwareVersion
    reader.uint64();
    if (type === statement.quote) return { kind: 'quote', extraData, clock, ...readQuote(reader) };
    const name = reader.sized(mostNameBytes, 'a name');
    reader.sized(mostNameBytes, 'a qualified name');
    return { kind: 'certification', extraData, clock, name };
  });
}

function readClock(reader: StructureReader): ClockInfo {
  const clock = reader.uint64();
  if (clock > BigInt(Number.MAX_SAFE_INTEGER)) return reader.refuse('has a clock of more than 285 000 years');
  const resetCount = reader.uint32();
  // restartCount
  reader.uint32();
  // TPMI_YES_NO (§9.2)
  const safe = reader.uint8();
  if (safe > 1) return reader.refuse('has a clock that is neither safe nor unsafe');
  return { clock: Number(clock), resetCount, safe: safe === 1 };
}

function readQuote(reader: StructureReader): Pick<Quote, 'selections' | 'pcrDigest'> {
  const count = reader.uint32();
  if (count > mostSelections) return reader.refuse(`selects PCRs of more than ${mostSelections} banks`);
  const selections = Array.from({ length: count }, () => readSelection(reader));
  return { selections, pcrDigest: reader.sized(mostDigestBytes, 'a PCR digest') };
}

function readSelection(reader: StructureReader): PcrSelection {
  const bank = readHash(reader);
  const size = reader.uint8();
  // §10.6.1: bits for 24 to 32 PCRs.
  if (size < 3 || size > 4) return reader.refuse('has a PCR selection that is not of 24 to 32 bits');
  const bits = reader.take(size);
  const pcrs = Array.from({ length: size * 8 }, (_, pcr) => pcr);
  return { bank, pcrs: pcrs.filter((pcr) => ((bits[pcr >> 3] ?? 0) & (1 << (pcr & 7))) !== 0) };
}
