/** Changes bytes at random, and reads TPM structures without a check: a second opinion about what was accepted. */

const extremes = [0, 1, 2, 0x10, 0x7f, 0x80, 0xfe, 0xff];

/** One to three changes of one of `originals`, or what is spliced from two of them. */
export function mutate(originals: readonly Buffer[], random: () => number): Buffer {
  const below = (limit: number) => Math.floor(random() * limit);
  const any = () => originals[below(originals.length)] ?? Buffer.of();
  let bytes = Buffer.from(any());
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(bytes.length + 1);
    const to = Math.min(bytes.length, at + 1 + below(8));
    const [head, part, tail] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)];
    switch (below(8)) {
      case 0:
      case 1:
        if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
        break;
      case 2:
        if (at < bytes.length) bytes[at] = extremes[below(extremes.length)] ?? 0;
        break;
      case 3:
        bytes = Buffer.concat([head, tail]);
        break;
      case 4:
        bytes = Buffer.concat([head, part, part, tail]);
        break;
      case 5:
        bytes = Buffer.concat([head, Buffer.of(below(256)), part, tail]);
        break;
      case 6:
        bytes = below(3) === 0 ? Buffer.from(head) : Buffer.concat([bytes, part]);
        break;
      default:
        bytes = Buffer.concat([head, any().subarray(at)]);
    }
  }
  return bytes;
}

class Lenient {
  readonly #bytes: Buffer;
  #at = 0;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  number(length: number): number {
    this.#at += length;
    return Number(`0x${this.#bytes.subarray(this.#at - length, this.#at).toString('hex')}`);
  }
  bytes(length: number): Buffer {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
  sized(): Buffer {
    return this.bytes(this.number(2));
  }
}

const hashes: Readonly<Record<number, string>> = { 11: 'sha256', 12: 'sha384', 13: 'sha512' };

export function secondAttest(bytes: Buffer): unknown {
  const from = new Lenient(bytes);
  from.number(4);
  const type = from.number(2);
  from.sized();
  const extraData = from.sized();
  const clock = from.number(8);
  const resetCount = from.number(4);
  from.number(4);
  const safe = from.number(1) === 1;
  from.bytes(8);
  const statement = { extraData, clock: { clock, resetCount, safe } };
  if (type === 0x8017) return { kind: 'certification', ...statement, name: from.sized() };
  const selections = Array.from({ length: from.number(4) }, () => {
    const bank = hashes[from.number(2)];
    const bits = [...from.bytes(from.number(1))].toReversed();
    const mask = BigInt(`0x${Buffer.from(bits).toString('hex')}`)
      .toString(2)
      .split('')
      .toReversed();
    return { bank, pcrs: mask.flatMap((bit, pcr) => (bit === '1' ? [pcr] : [])) };
  });
  return { kind: 'quote', ...statement, selections, pcrDigest: from.sized() };
}

export function secondSignature(bytes: Buffer): unknown {
  const from = new Lenient(bytes);
  const name = { 0x14: 'rsassa', 0x16: 'rsapss', 0x18: 'ecdsa' }[from.number(2)];
  const scheme = { name, hash: hashes[from.number(2)] };
  if (name === 'ecdsa') return { scheme, kind: 'ecc', r: from.sized(), s: from.sized() };
  return { scheme, kind: 'rsa', bytes: from.sized() };
}

/** The events of a log that go into a PCR. */
export function secondLog(bytes: Buffer): unknown {
  let at = 28;
  const number = () => {
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const part = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const banks = bytes.readUInt32LE(56);
  const sizes: Readonly<Record<number, number>> = { 4: 20, 11: 32, 12: 48, 13: 64, 18: 32, 39: 32, 40: 48, 41: 64 };
  part(number());
  const events: unknown[] = [];
  while (at < bytes.length) {
    const [pcr, type] = [number(), number()];
    number();
    const digests: Record<number, Buffer> = {};
    for (let bank = 0; bank < banks; bank += 1) {
      const id = part(2).readUInt16LE();
      digests[id] = part(sizes[id] ?? 0);
    }
    const data = part(number());
    if (type !== 3) events.push({ pcr, type, digest: digests[11], data });
  }
  return events;
}
