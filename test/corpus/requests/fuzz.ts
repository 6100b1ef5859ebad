/**
 * Random names, as many in one request as a certificate may well hold: of those that we accept, every single one must
 * be accepted by the reference too and come out of it as it comes out of us.
 */
import { decodeRequest } from '../../../core/x509/certificate-request.ts';
import * as der from '../../harness/x509/der-writer.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import type { AttributeSpec, RequestSpec } from '../../harness/x509/requests.ts';
import type { Random } from './random.ts';

export interface FuzzRequest {
  readonly name: string;
  readonly what: string;
  readonly request: Buffer;
  /** How many random names it holds. */
  readonly count: number;
}

const perKind = 400;
const perRequest = 100;

export function fuzzRequests(random: Random): FuzzRequest[] {
  const kinds: readonly (readonly [what: string, make: () => string | Buffer, into: (names: never) => RequestSpec])[] =
    [
      ['URIs', () => uri(random), (names: string[]) => ({ sans: { uri: names } })],
      ['DNS names', () => ascii(random), (names: string[]) => ({ sans: { dns: names } })],
      ['mail names', () => ascii(random), (names: string[]) => ({ sans: { email: names } })],
      ['IP addresses', () => address(random), (names: Buffer[]) => ({ sans: { ip: names } })],
      ['subject texts', () => text(random), (names: Buffer[]) => ({ subject: rdns(names) })],
    ];
  return kinds.flatMap(([what, make, into]) => {
    const specOf = into as (names: (string | Buffer)[]) => RequestSpec;
    const accepted: (string | Buffer)[] = [];
    // Bounded: about a third of the URIs and most of the others are accepted.
    for (let tries = 0; tries < 20 * perKind && accepted.length < perKind; tries++) {
      const name = make();
      if (decodeRequest(makeRequest(specOf([name])).bytes).ok) accepted.push(name);
    }
    const chunks = Array.from({ length: Math.ceil(accepted.length / perRequest) }, (_, index) =>
      accepted.slice(index * perRequest, (index + 1) * perRequest),
    );
    return chunks.map((names, index) => ({
      name: `fuzz-${what.toLowerCase().replaceAll(' ', '-')}-${index}`,
      what,
      request: makeRequest({ subject: { CN: 'fuzz' }, ...specOf(names) }).bytes,
      count: names.length,
    }));
  });
}

/** Of all the types that the certificate keeps, so that many are in one RDN. */
function rdns(values: readonly Buffer[]): AttributeSpec[][] {
  const types = ['O', 'OU', 'L', 'ST', 'street', 'postalCode', 'C'];
  return values.map((value, index) => [[types[index % types.length]!, value]]);
}

/** Any string type, holding anything that its encoding can, and sometimes what it cannot. */
function text(random: Random): Buffer {
  const characters = Array.from({ length: random.int(12) }, () =>
    random.pick([ascii, ascii, latin, basic, supplementary])(random),
  ).join('');
  return random.pick([der.utf8, der.utf8, der.printable, der.ia5, der.t61, der.bmp])(characters);
}

const latin = (random: Random): string => String.fromCodePoint(0x80 + random.int(0x80));
const basic = (random: Random): string => String.fromCodePoint(random.int(0xd800));
const supplementary = (random: Random): string => String.fromCodePoint(0x10000 + random.int(0x100000));

function ascii(random: Random): string {
  return Array.from({ length: random.int(20) }, () => String.fromCodePoint(0x20 + random.int(0x5f))).join('');
}

function address(random: Random): Buffer {
  const octets = Buffer.from(
    Array.from({ length: random.pick([4, 16]) }, () => (random.chance(0.5) ? 0 : random.int(256))),
  );
  if (octets.length === 16 && random.chance(0.2)) Buffer.from('00000000000000000000ffff', 'hex').copy(octets);
  return octets;
}

/** By the grammar of RFC 3986, with every part that may be there or not, and now and then a character too many. */
function uri(random: Random): string {
  const unreserved = 'aZ09-._~';
  const pchar = `${unreserved}!$&'()*+,;=:@`;
  const run = (characters: string, most: number): string =>
    Array.from({ length: random.int(most) }, () =>
      random.chance(0.1)
        ? `%${random.pick(['20', '2F', '2f', 'c3', '00', '41'])}`
        : random.pick(Array.from(characters)),
    ).join('');
  const optional = (probability: number, part: () => string): string => (random.chance(probability) ? part() : '');
  const scheme = random.pick(['https', 'spiffe', 'urn', 'x+y-1.0', 'file', 'mailto', 'HTTP', '1x']);
  const host = random.pick([
    () => 'example.com',
    () => `h-1_${run(unreserved, 4)}.x`,
    () => run(`${unreserved}!$&'()*+,;=`, 8),
    () => '[::1]',
    () => `[2001:db8::${random.int(9999)}]`,
    () => '[::ffff:10.0.0.1]',
    () => '10.0.0.1',
    () => '',
  ]);
  const authority = (): string =>
    `//${optional(0.2, () => `${run(`${unreserved}:!$`, 5)}@`)}${host()}${optional(0.2, () => `:${random.pick(['80', '', '0', '99999', '08'])}`)}`;
  const path = Array.from({ length: random.int(4) }, () => `/${run(pchar, 6)}`).join('');
  const hierarchical = random.chance(0.8) ? `${authority()}${path}` : `${run(pchar, 10)}${path}`;
  const whole = `${scheme}:${hierarchical}${optional(0.3, () => `?${run(`${pchar}/?`, 8)}`)}${optional(0.2, () => `#${run(`${pchar}/?`, 8)}`)}`;
  const at = random.int(whole.length);
  return random.chance(0.1)
    ? `${whole.slice(0, at)}${random.pick(Array.from(' "<>\\^`{|}[]%'))}${whole.slice(at)}`
    : whole;
}
