/**
 * Subjects as people, tools and old software write them: legal, and as different from one another as the reference
 * signer accepts. What we refuse on purpose is not here; each such thing is a case of its own among the deviations.
 */
import * as der from '../../harness/x509/der-writer.ts';
import type { AttributeSpec } from '../../harness/x509/requests.ts';
import type { Random } from './random.ts';

export type Rdns = readonly (readonly AttributeSpec[])[];

/** Nothing a linter could remark on. */
const plainNames = ['alice', 'Bob Example', 'build-robot', "O'Neil (ops), +1", 'svc:metrics/reader', 'a=b', '42'];
const oddNames = [
  'Zoë Müller',
  'Ωmega δοκιμή',
  '日本語 テスト',
  'שלום עולם',
  'emoji 😀', // outside the basic plane: no BMPString
  'e\u0301 combining',
  'wild*card',
  'R&D',
  'alice@example.com',
  'under_score',
  '"quoted" \\ <angle>; #hash',
  'two  blanks inside',
  'x'.repeat(64),
  'x'.repeat(65),
  `${'long '.repeat(60)}name`,
  'ü'.repeat(200),
];
const countries = ['DE', 'US', 'JP'];
const oddCountries = ['de', 'Germany', 'D', 'ÜÜ', ''];

/** What the certificate keeps (signers.md), beside O and CN, with which everything is decided. */
const keptTypes = ['C', 'ST', 'L', 'street', 'postalCode', 'OU', 'serialNumber'] as const;
/** What it drops. */
const droppedTypes = ['emailAddress', 'DC', 'UID', 'SN', '2.5.4.12', '2.5.4.42', '1.2.840.113549.1.9.2', '2.5.4.97'];

/** For the signer that leaves the subject free. `system:` names are among the deviations. */
export function freeSubject(random: Random): Rdns {
  if (random.chance(0.06)) return [];
  const attributes: AttributeSpec[] = [];
  for (let count = howMany(random); count > 0; count--) attributes.push(attribute('O', name(random), random));
  attributes.push(...extras(random));
  // The last common name counts.
  for (let count = random.chance(0.2) ? 2 + random.int(2) : random.int(10) === 0 ? 0 : 1; count > 0; count--)
    attributes.push(attribute('CN', name(random), random));
  return grouped(random.chance(0.6) ? attributes : random.shuffled(attributes), random);
}

/** For the kubelet signers: exactly these organizations, this last common name (none for `''`), and what else a subject may hold. */
export function nodeSubject(organizations: readonly string[], commonName: string, random: Random): Rdns {
  // Before the last one any common name may stand: none of it reaches the certificate.
  const earlier = commonName !== '' && random.chance(0.15) ? [random.pick(['system:node:other', 'whoever'])] : [];
  const identity = [
    ...organizations.map((organization) => attribute('O', organization, random)),
    ...[...earlier, ...(commonName === '' ? [] : [commonName])].map((name) => attribute('CN', name, random)),
  ];
  if (random.chance(0.6)) return grouped(identity, random);
  const all = [...identity];
  for (const extra of extras(random)) all.splice(random.int(all.length + 1), 0, extra);
  return grouped(all, random);
}

const alwaysKept = new Set(['O', 'OU', 'C', 'ST', 'L', 'street', 'postalCode']);

/** Whether the certificate will have a subject for sure; without one it needs other names (deviation 12). */
export function isNamed(subject: Rdns): boolean {
  return subject.some((rdn) => rdn.some(([type]) => alwaysKept.has(type)));
}

function name(random: Random): string {
  return random.pick(random.chance(0.5) ? plainNames : oddNames);
}

function howMany(random: Random): number {
  return random.pick([0, 1, 1, 1, 2, 3]);
}

function extras(random: Random): AttributeSpec[] {
  const types = random.chance(0.4) ? [] : random.some([...keptTypes, ...droppedTypes], 1, 5);
  return types.flatMap((type) => {
    const values = random.chance(0.25) ? 2 : 1;
    return Array.from({ length: values }, () => attribute(type, extraValue(type, random), random));
  });
}

function extraValue(type: string, random: Random): string {
  switch (type) {
    case 'C':
      return random.pick(random.chance(0.6) ? countries : oddCountries);
    case 'postalCode':
    case 'serialNumber':
      return random.pick(['12345', 'SN-0042', '0', 'D-80331', '']);
    case 'emailAddress':
      return random.pick(['alice@example.com', 'root@localhost']);
    case 'DC':
      return random.pick(['example', 'com']);
    default:
      // These attributes identify no user, so any text is permitted.
      return random.chance(0.1)
        ? random.pick(['', ' ', ' blanks around ', '\u202eoverride', '\ufeffmark first'])
        : name(random);
  }
}

/** Any of the string types that can hold the text, the common ones more often. */
function attribute(type: string, text: string, random: Random): AttributeSpec {
  const ascii = /^[\x20-\x7e]*$/.test(text);
  const types: ((value: string) => Buffer)[] = [der.utf8];
  if (/^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text)) types.push(der.printable, der.printable, der.printable);
  // Neither is a PrintableString character. Go takes both, and writes them as UTF8String.
  else if (/^[A-Za-z0-9 '()+,\-./:=?*&]*$/.test(text)) types.push(der.printable);
  if (ascii) types.push(der.ia5, der.t61);
  if (/^[0-9 ]+$/.test(text)) types.push(numeric);
  if (!/[\ud800-\udfff]/.test(text)) types.push(der.bmp);
  if (/^[\x20-\x7e\u00a0-\u00ff]*$/.test(text)) types.push(der.t61);
  return [type, random.pick(types)(text)];
}

const numeric = (text: string): Buffer => der.tlv(0x12, Buffer.from(text, 'latin1'));

/** One attribute an RDN, as most software writes it, or neighbours together in one, as Go and kubelet do. */
function grouped(attributes: readonly AttributeSpec[], random: Random): Rdns {
  const rdns: AttributeSpec[][] = [];
  for (const each of attributes) {
    const last = rdns.at(-1);
    if (last !== undefined && random.chance(0.2) && canShare(last, each)) last.push(each);
    else rdns.push([each]);
  }
  return rdns;
}

/** A SET OF is sorted, which would move one common name or serial number past another and so change which is last. */
function canShare(rdn: readonly AttributeSpec[], [type]: AttributeSpec): boolean {
  return (type !== 'CN' && type !== 'serialNumber') || rdn.every(([other]) => other !== type);
}
