/**
 * Valid requests changed at random, as data: a plan says what to do to which request, so that fast-check can draw,
 * shrink and print it, and the same seed gives the same changes.
 *
 * Most plans change the part that is signed and sign it anew with the requester's own key: hostile content under a
 * signature that is right, as a hostile requester makes it.
 */
import * as fc from 'fast-check';
import { oid } from '../../../harness/x509/der-writer.ts';
import { makeRequest, newKey, pemBlock, type MadeRequest, type RequestSpec } from '../../../harness/x509/requests.ts';
import type { Ending, HostileCase } from '../../../corpus/hostile/case.ts';
import {
  bodyOf,
  editAt,
  nodeAt,
  pathsOf,
  toBytes,
  toTree,
  type Path,
  type Tlv,
} from '../../../corpus/hostile/tlv-tree.ts';
import { refusalCodes } from '../../../../core/outcome/outcome.ts';

/** What is done to a node of the tree; `at` and `from` are taken modulo the number of nodes. */
type Step =
  | { readonly do: 'delete' | 'duplicate' | 'wrap' | 'empty' | 'swap'; readonly at: number }
  | { readonly do: 'retag'; readonly at: number; readonly tag: number }
  | { readonly do: 'relength'; readonly at: number; readonly form: number }
  | { readonly do: 'text'; readonly at: number; readonly text: string }
  | { readonly do: 'fill' | 'append'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly do: 'splice'; readonly at: number; readonly donor: number; readonly from: number };
/** What is done to a member of a list (an RDN, a name …): the result is DER, and mostly still a request. */
interface Change {
  readonly list: keyof typeof members;
  readonly do: 'delete' | 'duplicate' | 'swap' | 'splice' | 'text' | 'type' | 'string';
  readonly at: number;
  readonly donor: number;
  readonly from: number;
  readonly text: string;
}
/** What is done to bytes. */
interface Nick {
  readonly do: 'flip' | 'set' | 'insert' | 'remove' | 'cut';
  readonly at: number;
  readonly value: number;
}
export interface Plan {
  readonly base: number;
  /**
   * Where the changes are made: in the names or anywhere in the content before it is signed, or afterwards in the
   * request, its DER or its PEM.
   */
  readonly where: 'names' | 'signed' | 'request' | 'der' | 'pem';
  readonly changes: readonly Change[];
  readonly steps: readonly Step[];
  readonly nicks: readonly Nick[];
}

interface Base {
  readonly made: MadeRequest;
  readonly spec: RequestSpec;
  readonly signerName: string;
  readonly usages: readonly string[];
}

const client = { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth', 'digital signature'] };
const kubelet = {
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  usages: ['client auth', 'digital signature'],
};
const serving = { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
const legacy = { signerName: 'kubernetes.io/legacy-unknown', usages: ['server auth', 'key encipherment', 'signing'] };
const node = { O: 'system:nodes', CN: 'system:node:n1' };
const everySan = {
  dns: ['a.example', '*.b.example'],
  email: ['c@d.example'],
  ip: ['10.0.0.1', '2001:db8::1'],
  uri: ['spiffe://e/f'],
};
/** Requests that are issued as they stand: every signer, every kind of key and padding, every kind of name. */
const specs: readonly (Omit<Base, 'made'> & { readonly spec: RequestSpec })[] = [
  { ...client, spec: { subject: { CN: 'jane', O: ['dev', 'ops'] }, sans: everySan } },
  { ...client, spec: { key: 'RSA-2048', subject: { CN: 'joe' } } },
  { ...client, spec: { key: 'RSA-2048', padding: 'pss', subject: { CN: 'jo\u00e4' } } },
  { ...client, spec: { key: 'Ed25519', subject: { CN: 'jim', C: 'DE', L: 'Ulm', OU: ['a', 'b'] } } },
  { ...client, spec: { key: 'P-384', hash: 'sha384', subject: { CN: 'jill', serialNumber: '7' } } },
  { ...kubelet, spec: { subject: node } },
  { ...kubelet, spec: { key: 'P-521', hash: 'sha512', subject: node } },
  { ...serving, spec: { subject: node, sans: { dns: ['n1'], ip: ['10.0.0.7', '2001:db8::7'] } } },
  { ...serving, spec: { key: newKey('P-256'), subject: node, sans: { dns: ['n1', 'n1.example'] } } },
  {
    ...legacy,
    spec: {
      subject: [
        [
          ['CN', 'x'],
          ['O', 'y'],
        ],
        [['emailAddress', 'a@b']],
        [['1.2.3.4', 'z']],
      ],
      sans: everySan,
      extensions: [{ oid: '2.5.29.19', critical: true, value: Buffer.from('30030101ff', 'hex') }],
    },
  },
];
export const bases: readonly Base[] = specs.map((base) => ({ ...base, made: makeRequest(base.spec) }));

/** The lists of a CertificationRequestInfo, by the paths of their members. */
const members = {
  rdn: (path: Path) => path.length === 2 && path[0] === 1,
  pair: (path: Path) => path.length === 3 && path[0] === 1,
  attribute: (path: Path) => path.length === 2 && path[0] === 3,
  extension: (path: Path) => path.length === 5 && path[0] === 3 && path[2] === 1,
  name: (path: Path) => path.length === 8 && path[0] === 3 && path[2] === 1,
} as const;

const hostileTexts = [
  '',
  '\0',
  'a\0b',
  'a\nb',
  '\u001b[31m',
  '\u202e',
  '\u00e4',
  'system:masters',
  'system:node:',
  'system:node:n2',
  'system:nodes',
  '*',
  '*.example',
  'http://a/%zz',
  'a'.repeat(64),
  'a'.repeat(2_000),
] as const;
const tags = [
  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0c, 0x12, 0x13, 0x14, 0x16, 0x1c, 0x1e, 0x30, 0x31, 0x81, 0x82, 0x86, 0x87,
  0x88, 0xa0, 0xa1, 0xa4,
];

const at = fc.nat(10_000);
const bytes = fc.uint8Array({ maxLength: 40 });
const textArbitrary = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ maxLength: 80 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.domain() },
  { weight: 1, arbitrary: fc.emailAddress() },
  { weight: 1, arbitrary: fc.webUrl({ withQueryParameters: true, withFragments: true }) },
);
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('delete', 'duplicate', 'wrap', 'empty', 'swap'), at }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('retag'), at, tag: fc.oneof(fc.constantFrom(...tags), fc.nat(255)) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('relength'), at, form: fc.nat(7) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('text'),
      at,
      text: textArbitrary,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('fill', 'append'), at, bytes }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('splice'), at, donor: at, from: at }) },
);
const changeArbitrary: fc.Arbitrary<Change> = fc.record({
  list: fc.constantFrom('rdn', 'pair', 'attribute', 'extension', 'name'),
  do: fc.constantFrom('delete', 'duplicate', 'swap', 'splice', 'text', 'text', 'type', 'string'),
  at,
  donor: at,
  from: at,
  text: textArbitrary,
});
const nickArbitrary: fc.Arbitrary<Nick> = fc.record({
  do: fc.constantFrom('flip', 'set', 'insert', 'remove', 'cut'),
  at,
  value: fc.nat(255),
});

export const planArbitrary: fc.Arbitrary<Plan> = fc.record({
  base: fc.nat(bases.length - 1),
  where: fc.oneof(
    { weight: 6, arbitrary: fc.constant('names' as const) },
    { weight: 5, arbitrary: fc.constant('signed' as const) },
    { weight: 2, arbitrary: fc.constant('request' as const) },
    { weight: 1, arbitrary: fc.constant('der' as const) },
    { weight: 2, arbitrary: fc.constant('pem' as const) },
  ),
  changes: fc.array(changeArbitrary, { minLength: 1, maxLength: 5 }),
  steps: fc.array(stepArbitrary, { minLength: 1, maxLength: 4 }),
  nicks: fc.array(nickArbitrary, { minLength: 1, maxLength: 6 }),
});

/** The text of `spec.request` that the plan makes. */
function requestOf(plan: Plan): Buffer {
  const { made, spec } = baseOf(plan);
  const block = (der: Uint8Array) => Buffer.from(pemBlock('CERTIFICATE REQUEST', der), 'latin1');
  switch (plan.where) {
    case 'names':
      return makeRequest({ ...spec, info: (info) => toBytes(plan.changes.reduce(renamed, toTree(info))) }).bytes;
    case 'signed':
      return makeRequest({ ...spec, info: (info) => changed(info, plan.steps) }).bytes;
    case 'request':
      return block(changed(made.der, plan.steps));
    case 'der':
      return block(nicked(made.der, plan.nicks));
    case 'pem':
      return nicked(made.bytes, plan.nicks);
  }
}

function baseOf({ base }: Plan): Base {
  const found = bases[base];
  if (found === undefined) throw new RangeError(`no base ${base}`);
  return found;
}

function changed(der: Buffer, steps: readonly Step[]): Buffer {
  return toBytes(steps.reduce(applied, toTree(der)));
}

function applied(tree: Tlv, step: Step): Tlv {
  const paths = pathsOf(tree);
  const path = paths[step.at % paths.length] ?? [];
  switch (step.do) {
    case 'delete':
      return path.length === 0 ? tree : editAt(tree, path, () => []);
    case 'duplicate':
      return editAt(tree, path, (found) => [found, found]);
    case 'wrap':
      return editAt(tree, path, (found) => [{ identifier: Buffer.from([0x30]), content: [found] }]);
    case 'empty':
      return editAt(tree, path, (found) => [{ identifier: found.identifier, content: Buffer.alloc(0) }]);
    case 'swap':
      return swapped(tree, path);
    case 'retag':
      return editAt(tree, path, (found) => [{ ...found, identifier: Buffer.from([step.tag]) }]);
    case 'relength':
      return editAt(tree, path, (found) => [{ ...found, length: lengthForm(step.form, bodyOf(found).length) }]);
    case 'text':
      return editAt(tree, textPath(tree, paths, step.at), (found) => [
        { identifier: found.identifier, content: Buffer.from(step.text, 'utf8') },
      ]);
    case 'fill':
      return editAt(tree, path, (found) => [{ identifier: found.identifier, content: step.bytes }]);
    case 'append':
      return editAt(tree, path, (found) => [
        { identifier: found.identifier, content: Buffer.concat([bodyOf(found), step.bytes]) },
      ]);
    case 'splice': {
      const donor = toTree((bases[step.donor % bases.length] ?? bases[0]!).made.der);
      const donors = pathsOf(donor);
      return editAt(tree, path, () => [nodeAt(donor, donors[step.from % donors.length] ?? [])]);
    }
  }
}

const types = [
  '2.5.4.3',
  '2.5.4.5',
  '2.5.4.6',
  '2.5.4.10',
  '2.5.4.11',
  '0.9.2342.19200300.100.1.25',
  '2.5.29.17',
  '1.2.3',
];
const stringTags = [0x0c, 0x13, 0x14, 0x16, 0x1e, 0x12, 0x81, 0x82, 0x86, 0x87];

function renamed(tree: Tlv, change: Change): Tlv {
  const paths = pathsOf(tree).filter(members[change.list]);
  const path = paths[change.at % paths.length];
  if (path === undefined) return tree;
  switch (change.do) {
    case 'delete':
      return editAt(tree, path, () => []);
    case 'duplicate':
      return editAt(tree, path, (found) => [found, found]);
    case 'swap':
      return swapped(tree, path);
    case 'splice': {
      const donor = nodeAt(toTree((bases[change.donor % bases.length] ?? bases[0]!).made.der), [0]);
      const donors = pathsOf(donor).filter(members[change.list]);
      const from = donors[change.from % donors.length];
      return from === undefined ? tree : editAt(tree, path, (found) => [found, nodeAt(donor, from)]);
    }
    case 'text':
      return inside(tree, path, stringTags, change.from, (found) => ({
        identifier: found.identifier,
        content: Buffer.from(change.text, 'utf8'),
      }));
    case 'type':
      return inside(tree, path, [0x06], change.from, () => toTree(oid(types[change.from % types.length] ?? '')));
    case 'string':
      return inside(tree, path, stringTags, change.donor, (found) => ({
        ...found,
        identifier: Buffer.from([stringTags[change.from % stringTags.length] ?? 0]),
      }));
  }
}

/** One of the elements at or below `path` that have such a tag. */
function inside(tree: Tlv, path: Path, wanted: readonly number[], index: number, edit: (node: Tlv) => Tlv): Tlv {
  const found = pathsOf(nodeAt(tree, path), path).filter((below) =>
    wanted.includes(nodeAt(tree, below).identifier[0] ?? 0),
  );
  const chosen = found[index % Math.max(found.length, 1)];
  return chosen === undefined ? tree : editAt(tree, chosen, (node) => [edit(node)]);
}

/** Of two siblings the later one first. */
function swapped(tree: Tlv, path: Path): Tlv {
  const index = path.at(-1) ?? 0;
  if (path.length === 0 || index === 0) return tree;
  return editAt(tree, path.slice(0, -1), (parent) => {
    if (parent.content instanceof Uint8Array) return [parent];
    const children = [...parent.content];
    const [before, after] = [children[index - 1], children[index]];
    if (before === undefined || after === undefined) return [parent];
    children.splice(index - 1, 2, after, before);
    return [{ ...parent, content: children }];
  });
}

/** A place where text is expected: a string, or a name in a context tag. */
function textPath(tree: Tlv, paths: readonly Path[], index: number): Path {
  const isText = (path: Path) =>
    [0x0c, 0x13, 0x16, 0x81, 0x82, 0x86, 0x87].includes(nodeAt(tree, path).identifier[0] ?? 0);
  const texts = paths.filter(isText);
  return texts[index % Math.max(texts.length, 1)] ?? [];
}

function lengthForm(form: number, size: number): Buffer {
  const octets = (value: number, count: number) =>
    Array.from({ length: count }, (_, i) => Math.floor(value / 256 ** (count - 1 - i)) % 256);
  switch (form) {
    case 0:
      return Buffer.from([0x80]);
    case 1:
      return Buffer.from([0x82, ...octets(size, 2)]);
    case 2:
      return Buffer.from([0x84, ...octets(size, 4)]);
    case 3:
      return Buffer.from([0x85, ...octets(size, 5)]);
    case 4:
      return Buffer.from([0x84, 0xff, 0xff, 0xff, 0xff]);
    case 5:
      return Buffer.from([0x82, ...octets(size + 1, 2)]);
    case 6:
      return Buffer.from([Math.max(size - 1, 0) % 128]);
    default:
      return Buffer.from([(size + 1) % 128]);
  }
}

function nicked(original: Buffer, nicks: readonly Nick[]): Buffer {
  return nicks.reduce((text, { do: action, at: place, value }) => {
    const index = place % Math.max(text.length, 1);
    const [before, after] = [text.subarray(0, index), text.subarray(index)];
    switch (action) {
      case 'flip':
        return Buffer.concat([before, Buffer.from([(after[0] ?? 0) ^ (1 << (value & 7))]), after.subarray(1)]);
      case 'set':
        return Buffer.concat([before, Buffer.from([value]), after.subarray(1)]);
      case 'insert':
        return Buffer.concat([before, Buffer.from([value]), after]);
      case 'remove':
        return Buffer.concat([before, after.subarray(1 + (value % 8))]);
      case 'cut':
        // Mostly the very end: a request cut anywhere is in the corpus already.
        return text.subarray(0, Math.max(text.length - (value % 16), 0));
    }
  }, original);
}

/** Any named refusal, or a certificate that stands up to the second opinion. */
const anything: readonly Ending[] = ['issued', 'invalid', ...refusalCodes];

export function planCase(id: string, plan: Plan): HostileCase {
  const { signerName, usages } = baseOf(plan);
  return { id, expected: anything, input: () => ({ request: requestOf(plan), signerName, usages }) };
}
