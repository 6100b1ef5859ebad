/** Requests with the blocks of gke-exec-auth-plugin, right ones and wrong ones. Each check of the blocks has a case that it alone refuses. */
import * as der from '../../../harness/x509/der-writer.ts';
import { newKey, sharedKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';
import {
  attestationCertificate,
  certifiedName,
  identifier,
  identityText,
  instanceIdentifier,
  keys,
  vm,
  vmRequest,
} from './vm.ts';
import type { Block, VmRequestSpec } from './vm.ts';

export interface BlockCase {
  readonly name: string;
  readonly expect: 'accepted' | readonly [code: 'RequestMalformed' | 'AttestationInvalid', words: string];
  readonly text: () => string;
}

const malformed = (words: string) => ['RequestMalformed', words] as const;
const invalid = (words: string) => ['AttestationInvalid', words] as const;

function one(name: string, expect: BlockCase['expect'], spec: VmRequestSpec = {}): BlockCase {
  return { name, expect, text: () => vmRequest(spec) };
}

const [otherLabels, order, second] = ['another kind', 'out of order', 'has a second'].map((words) => malformed(words));
const labels: readonly BlockCase[] = [
  one('without a certificate', 'accepted'),
  one('with a certificate', 'accepted', { certificate: {} }),
  ...([0, 1, 2, 3, 4] as const).map((index) =>
    one(`block ${index} twice`, second!, {
      certificate: {},
      blocks: (usual) => usual.flatMap((block, at) => (at === index ? [block, block] : [block])),
    }),
  ),
  ...([1, 2, 3] as const).map((index) =>
    one(`block ${index} behind the next one`, order!, {
      certificate: {},
      blocks: (usual) =>
        usual.map((block, at) => (at === index ? usual[index + 1]! : at === index + 1 ? usual[index]! : block)),
    }),
  ),
  ...([2, 3] as const).map((index) =>
    one(`without block ${index}`, malformed('lacks one of the blocks'), {
      blocks: (usual) => usual.toSpliced(index, 1),
    }),
  ),
  one('without the attestation', malformed('lacks one of the blocks'), { blocks: (usual) => usual.toSpliced(1, 1) }),
  one('nothing but a certificate', malformed('lacks one of the blocks'), {
    certificate: {},
    blocks: (usual) => [usual[0]!, usual[4]!],
  }),
  one('a block that no reader knows', otherLabels!, {
    blocks: (usual) => [...usual, ['NOTES', Buffer.from('x')] as Block],
  }),
  one('a second certificate request behind them', second!, { blocks: (usual) => [...usual, usual[0]!] }),
  {
    name: 'text between two blocks',
    expect: malformed('has text after a block'),
    text: () => vmRequest().replace('-----BEGIN VM', 'note\n-----BEGIN VM'),
  },
  {
    name: 'a header in a block',
    expect: malformed('has a header'),
    text: () => vmRequest().replace('-----BEGIN VM IDENTITY-----', '-----BEGIN VM IDENTITY-----\nzone: a'),
  },
];

const key = sharedKey('P-256');
/** Its x coordinate begins with zero. One of 256 keys has it. */
function shortKey(): TestKey {
  for (;;) {
    const made = newKey('P-256');
    // The point is the last 64 bytes of the SPKI.
    if (made.spki.at(-64) === 0) return made;
  }
}
const short = shortKey();

const attestation: readonly BlockCase[] = [
  one('a coordinate that begins with zero, as the plugin names the key', 'accepted', { key: short }),
  one('a coordinate that begins with zero, as a TPM names the key', 'accepted', {
    key: short,
    attest: { name: certifiedName(short.spki, 'padded') },
  }),
  one('another magic number', malformed('magic number'), { attest: { magic: 'ff544348' } }),
  one('no structure of a TPM', malformed('magic number'), { attestBytes: () => Buffer.from('{"v":1,"a":2}') }),
  one('a creation', malformed('neither a quote nor a certification'), { attest: { type: '801a' } }),
  one('a quote', malformed('certifies no key'), {
    attestBytes: (usual) => {
      // TPMS_QUOTE_INFO behind the same head: one selection of no PCR, and a digest.
      const quote = Buffer.concat([
        usual.subarray(0, usual.length - 72),
        Buffer.from('00000001000b030000000020', 'hex'),
        Buffer.alloc(32),
      ]);
      quote.writeUInt16BE(0x8018, 4);
      return quote;
    },
  }),
  one('a trailing byte', malformed('trailing bytes'), { attest: { trailing: Buffer.from([0]) } }),
  one('cut short', malformed('ends inside a field'), { attestBytes: (usual) => usual.subarray(0, usual.length - 1) }),
  one('extraData', invalid('extraData'), { attest: { extraData: Buffer.from('00ff55aa', 'hex') } }),
  one('the name of another key', invalid('another key'), { attest: { name: certifiedName(newKey('P-256').spki) } }),
  one('the name of the key with other attributes', invalid('another key'), {
    attest: { name: certifiedName(key.spki, 'stripped', '00040072') },
  }),
  one('no name', invalid('another key'), { attest: { name: new Uint8Array() } }),
  one('a key on P-384', invalid('not a key on P-256'), { key: sharedKey('P-384') }),
  one('a key on P-521', invalid('not a key on P-256'), { key: sharedKey('P-521') }),
  one('an RSA key', invalid('not an elliptic-curve key'), { key: sharedKey('RSA-2048') }),
  one('a signature that is too short', malformed('ATTESTATION SIGNATURE'), { signature: (usual) => usual.subarray(1) }),
  one('a signature with the header of a TPM', malformed('ATTESTATION SIGNATURE'), {
    signature: (usual) => Buffer.concat([Buffer.from('0014000b0100', 'hex'), usual, usual]),
  }),
];

const wrong = malformed('VM IDENTITY');
const text = identityText();
const identity: readonly BlockCase[] = [
  one('a project in a domain', 'accepted', { identity: { projectId: 'example.com:my-nodes' } }),
  ...(
    [
      ['not JSON', 'vm'],
      ['empty', ''],
      ['a blank', text.replace(':', ': ')],
      ['a line end', `${text}\n`],
      ['a byte order mark', `\uFEFF${text}`],
      ['another order', text.replace(/^\{("zone":"[^"]*"),("id":\d+)/, '{$2,$1')],
      ['a key twice', text.replace('}', ',"id":8}')],
      ['a key in another letter case', text.replace('"zone"', '"Zone"')],
      ['an unknown key', text.replace('}', ',"pod":"a"}')],
      ['a missing key', text.replace(/,"project_name":"[^"]*"/, '')],
      ['two objects', text + text],
      ['a number as text', text.replace(/"id":(\d+)/, '"id":"$1"')],
      ['a fraction', text.replace(/"id":(\d+)/, '"id":$1.0')],
      ['an exponent', text.replace(/"id":(\d+)/, '"id":$1e0')],
      ['a negative number', text.replace('"id":', '"id":-')],
      ['zero', identityText({ instanceId: '0' })],
      ['a leading zero', identityText({ instanceId: '07' })],
      ['a number of 21 digits', identityText({ instanceId: '1'.repeat(21) })],
      ['a path in the name', identityText({ name: '../x' })],
      ['a path in the zone', identityText({ zone: 'a/instances/other' })],
      ['a query in the zone', identityText({ zone: 'a?x' })],
      ['an escape in the name', identityText({ name: '\\u0061' })],
      ['a name in upper case', identityText({ name: 'Worker-1' })],
      ['a name of 64 characters', identityText({ name: 'a'.repeat(64) })],
      ['a project name with a blank', identityText({ projectId: 'my nodes' })],
      ['an invalid project number', identityText({ projectNumber: '4x' })],
    ] as const
  ).map(([name, written]) => one(`VM IDENTITY: ${name}`, wrong, { identity: written })),
];

const high = '18446744073709551615';
function utf8Identifier(): Buffer {
  const [number, project] = [der.integer(BigInt(vm.instanceId)), der.integer(BigInt(vm.projectNumber))];
  return der.sequence(der.utf8(vm.zone), number, der.utf8(vm.name), project, der.utf8(vm.projectId));
}

const other = { ...vm, instanceId: '7318206418127403212' };
const certificate: readonly BlockCase[] = [
  one('a certificate with the identifier of go-tpm-tools', 'accepted', {
    certificate: { identifier: identifier('project first') },
  }),
  one('a certificate with security properties', 'accepted', {
    certificate: {
      identifier: withMore(identifier('project first'), der.constructed(0, der.sequence(der.integer(0)))),
    },
  }),
  one('a certificate with an identifier in UTF-8', 'accepted', {
    certificate: { identifier: utf8Identifier() },
  }),
  one('a certificate for an instance id of 64 bits, which Go writes as a negative number', 'accepted', {
    identity: { instanceId: high },
    certificate: {
      identifier: der.sequence(
        der.printable(vm.zone),
        der.tlv(0x02, Buffer.from([0xff])),
        der.printable(vm.name),
        der.integer(BigInt(vm.projectNumber)),
        der.printable(vm.projectId),
      ),
    },
  }),
  one('a certificate whose instance id is 2^64 more', invalid('another VM'), {
    certificate: {
      identifier: der.sequence(
        der.printable(vm.zone),
        der.integer(BigInt(vm.instanceId) + 2n ** 64n),
        der.printable(vm.name),
        der.integer(BigInt(vm.projectNumber)),
        der.printable(vm.projectId),
      ),
    },
  }),
  one('a certificate without identifier', 'accepted', { certificate: { identifier: null } }),
  ...(['zone', 'instanceId', 'name', 'projectNumber', 'projectId'] as const).map((field) => {
    const differing = { ...vm, [field]: field === 'instanceId' || field === 'projectNumber' ? '5' : 'other' };
    return one(`a certificate for another ${field}`, invalid('another VM'), {
      certificate: { identifier: identifier('vm first', differing) },
    });
  }),
  one('a certificate for another VM, the project first', invalid('another VM'), {
    certificate: { identifier: identifier('project first', other) },
  }),
  one('a certificate whose identifier has more', invalid('another VM'), {
    certificate: { identifier: withMore(identifier('vm first'), der.utf8('x')) },
  }),
  one('a certificate whose identifier has security properties and more', invalid('another VM'), {
    certificate: { identifier: withMore(identifier('vm first'), der.constructed(0), der.utf8('x')) },
  }),
  one('a certificate whose identifier is no sequence', invalid('another VM'), {
    certificate: { identifier: der.utf8('x') },
  }),
  one('a certificate whose identifier has numbers as text', invalid('another VM'), {
    certificate: {
      identifier: der.sequence(
        der.printable(vm.zone),
        der.printable(vm.instanceId),
        der.printable(vm.name),
        der.printable(vm.projectNumber),
        der.printable(vm.projectId),
      ),
    },
  }),
  one('a certificate with two identifiers', malformed('not one in DER'), {
    certificate: { extensions: [{ oid: instanceIdentifier, value: identifier('vm first') }] },
  }),
  one('a certificate for another key', invalid('did not sign'), { certificate: { key: keys.other } }),
  one('a signature by another key than that of the certificate', invalid('did not sign'), {
    certificate: {},
    signer: keys.other,
  }),
  one('a signature over other bytes', invalid('did not sign'), {
    certificate: {},
    signature: (usual) => Buffer.concat([usual.subarray(0, 255), Buffer.from([(usual.at(255) ?? 0) ^ 1])]),
  }),
  one('a certificate for a short key', invalid('no RSA key of 2048 bits'), { certificate: { key: keys.short } }),
  one('a certificate for an EC key', invalid('no RSA key of 2048 bits'), { certificate: { key: key.privateKey } }),
  one('a certificate of a CA', invalid('certificate of a CA'), {
    certificate: { extensions: [{ oid: '2.5.29.19', critical: true, value: der.sequence(der.boolean(true)) }] },
  }),
  one('a certificate with a trailing byte', malformed('not one in DER'), {
    certificate: Buffer.concat([attestationCertificate(), Buffer.from([0])]),
  }),
  one('an invalid certificate', malformed('not one in DER'), { certificate: Buffer.from('30820000', 'hex') }),
  one('an empty certificate', malformed('not one in DER'), { certificate: new Uint8Array() }),
];

function withMore(sequence: Buffer, ...more: readonly Uint8Array[]): Buffer {
  // Both lengths are below 128, so each is one octet.
  return der.sequence(sequence.subarray(2), ...more);
}

export const blockCases: readonly BlockCase[] = [...labels, ...attestation, ...identity, ...certificate];
