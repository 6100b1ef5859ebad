/**
 * Reads structures of TPM 2.0 Part 2 ("Structures", revision 1.59): big-endian numbers, and byte strings behind a 16-bit size
 * (TPM2B, §10.4). Every file of this folder cites the section of that part. The event log has little-endian numbers.
 */
import { failure, success } from '../../../outcome/result.ts';
import type { Result } from '../../../outcome/result.ts';

/** Thrown and caught in this file only. */
class StructureProblem extends Error {}

export interface Format {
  readonly numbers: 'bigEndian' | 'littleEndian';
  /** Completes `ends inside`. */
  readonly part: string;
}

const ofTpm: Format = { numbers: 'bigEndian', part: 'a field' };

/** Its methods may be called only inside `decodeStructure`. */
export class StructureReader {
  readonly #bytes: Buffer;
  readonly #format: Format;
  #offset = 0;

  constructor(bytes: Uint8Array, format: Format) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#format = format;
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  uint8(): number {
    return this.take(1).readUInt8();
  }

  uint16(): number {
    const bytes = this.take(2);
    return this.#format.numbers === 'bigEndian' ? bytes.readUInt16BE() : bytes.readUInt16LE();
  }

  uint32(): number {
    const bytes = this.take(4);
    return this.#format.numbers === 'bigEndian' ? bytes.readUInt32BE() : bytes.readUInt32LE();
  }

  uint64(): bigint {
    return this.take(8).readBigUInt64BE();
  }

  take(length: number): Buffer {
    if (length > this.remaining) return this.refuse(`ends inside ${this.#format.part}`);
    this.#offset += length;
    return this.#bytes.subarray(this.#offset - length, this.#offset);
  }

  /** A structure inside this one. */
  within(length: number): StructureReader {
    return new StructureReader(this.take(length), this.#format);
  }

  /** A TPM2B of at most `most` bytes. `field` has its article: `a policy`. */
  sized(most: number, field: string): Buffer {
    const size = this.uint16();
    if (size > most) return this.refuse(`has ${field} of more than ${most} bytes`);
    return this.take(size);
  }

  /** The problem completes a sentence whose subject is the structure: `has trailing bytes`. It never quotes content. */
  refuse(problem: string): never {
    throw new StructureProblem(problem);
  }
}

/** Exactly one structure of at most `most` bytes. Bytes behind it would be covered by no check. */
export function decodeStructure<T>(
  bytes: Uint8Array,
  most: number,
  read: (reader: StructureReader) => T,
  format = ofTpm,
): Result<T, string> {
  if (bytes.length > most) return failure(`is larger than ${most} bytes`);
  const reader = new StructureReader(bytes, format);
  try {
    const value = read(reader);
    return reader.remaining === 0 ? success(value) : failure('has trailing bytes');
  } catch (error) {
    if (error instanceof StructureProblem) return failure(error.message);
    throw error;
  }
}
