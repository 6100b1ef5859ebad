/**
 * What gke-exec-auth-plugin would send from a Shielded VM whose vTPM this file stands in for, and everything near it that an attacker
 * could write, sign or have certified. The tests hold it to the real requests of real-requests.ts.
 */
import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as der from '../../../harness/x509/der-writer.ts';
import {
  encodeExtensions,
  encodeSubject,
  makeRequest,
  newKey,
  pemBlock,
  sharedKey,
} from '../../../harness/x509/requests.ts';
import type { ExtensionSpec, RequestSpec, TestKey } from '../../../harness/x509/requests.ts';

export const vm = {
  zone: 'europe-west3-b',
  // More than a JavaScript number can hold.
  instanceId: '7318206418127403211',
  name: 'worker-1',
  projectNumber: '424242424242',
  projectId: 'my-nodes',
} as const;

function rsa(modulusLength: number): KeyObject {
  return generateKeyPairSync('rsa', { modulusLength }).privateKey;
}

/** The attestation key of the VM, that of another one, and one that is too short. */
export const keys = { vm: rsa(2048), other: rsa(2048), short: rsa(1024) };

export function publicPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

export function spkiOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

// ── TPM structures ──────────────────────────────────────────────────────────────────────────────────────────────────

function sized(bytes: Uint8Array): Buffer {
  const size = Buffer.alloc(2);
  size.writeUInt16BE(bytes.length);
  return Buffer.concat([size, bytes]);
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

/** The name of an EC key as the plugin loads it. `padded`: as a TPM that pads the coordinates names it. */
export function certifiedName(
  spki: Uint8Array,
  form: 'stripped' | 'padded' = 'stripped',
  attributes = '00040040',
): Buffer {
  const { x = '', y = '' } = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }).export({
    format: 'jwk',
  });
  const coordinates = [x, y].map((text) => {
    const bytes = Buffer.from(text, 'base64url');
    return form === 'padded' ? bytes : bytes.subarray(bytes.findIndex((byte) => byte !== 0));
  });
  const area = Buffer.concat([
    hex(`0023 000b ${attributes} 0000 0010 0018 000b 0003 0010`),
    ...coordinates.map((coordinate) => sized(coordinate)),
  ]);
  return Buffer.concat([hex('000b'), createHash('sha256').update(area).digest()]);
}

export interface AttestSpec {
  readonly magic?: string;
  readonly type?: string;
  readonly extraData?: Uint8Array;
  readonly clock?: bigint;
  readonly resetCount?: number;
  readonly safe?: number;
  readonly name?: Uint8Array;
  readonly trailing?: Uint8Array;
}

/** TPMS_ATTEST of TPM2_Certify. */
export function attest(name: Uint8Array, spec: AttestSpec = {}): Buffer {
  const clock = Buffer.alloc(17);
  clock.writeBigUInt64BE(spec.clock ?? 60_000n);
  clock.writeUInt32BE(spec.resetCount ?? 1, 8);
  clock.writeUInt8(spec.safe ?? 1, 16);
  const signer = Buffer.concat([hex('000b'), createHash('sha256').update('an attestation key').digest()]);
  return Buffer.concat([
    hex(spec.magic ?? 'ff544347'),
    hex(spec.type ?? '8017'),
    sized(signer),
    sized(spec.extraData ?? new Uint8Array()),
    clock,
    hex('2019102300163636'),
    sized(spec.name ?? name),
    sized(spec.name ?? name),
    spec.trailing ?? new Uint8Array(),
  ]);
}

// ── Attestation certificates ────────────────────────────────────────────────────────────────────────────────────────

export interface CertificateSpec {
  readonly key?: KeyObject;
  /** Instead of the VM's; `null` leaves the extension out. */
  readonly identifier?: Uint8Array | null;
  /** The first octet of keyUsage, instead of digitalSignature. */
  readonly usage?: number;
  readonly extensions?: readonly ExtensionSpec[];
  readonly notBefore?: string;
  readonly notAfter?: string;
  /** OID, instead of ECDSA with SHA-256. */
  readonly algorithm?: string;
  readonly issuer?: { readonly name: string; readonly key: TestKey };
}

export const now = Date.parse('2026-08-30T12:00:30Z');

interface Signed {
  readonly subject: string;
  readonly spki: Uint8Array;
  readonly issuer: { readonly name: string; readonly key: TestKey };
  readonly extensions: readonly ExtensionSpec[];
  readonly notBefore?: string;
  readonly notAfter?: string;
  readonly algorithm?: string;
}

function certificate({
  subject,
  spki,
  issuer,
  extensions,
  notBefore,
  notAfter,
  algorithm: oid = '1.2.840.10045.4.3.2',
}: Signed): Buffer {
  const time = (text: string): Buffer => der.tlv(0x18, Buffer.from(text, 'latin1'));
  const algorithm = der.sequence(der.oid(oid));
  const tbs = der.sequence(
    der.constructed(0, der.integer(2)),
    der.integer(4711),
    algorithm,
    encodeSubject({ CN: issuer.name }),
    der.sequence(time(notBefore ?? '20260101000000Z'), time(notAfter ?? '20560101000000Z')),
    encodeSubject({ CN: subject }),
    spki,
    der.constructed(3, encodeExtensions(extensions)),
  );
  return der.sequence(tbs, algorithm, der.bits(sign('sha256', tbs, issuer.key.privateKey)));
}

const caExtensions: readonly ExtensionSpec[] = [
  { oid: '2.5.29.19', critical: true, value: der.sequence(der.boolean(true)) },
  { oid: '2.5.29.15', critical: true, value: der.bits(Buffer.from([0x06]), 1) },
];

const root = { name: 'EK/AK CA Root', key: newKey('P-256') };
const issuing = { name: 'EK/AK CA Intermediate', key: newKey('P-256') };
/** A CA of the same name with another key. */
const foreign = { name: root.name, key: newKey('P-256') };

function caCertificate(subject: typeof root, issuer: typeof root): string {
  const spec = { subject: subject.name, spki: subject.key.spki, issuer, extensions: caExtensions };
  return pemBlock('CERTIFICATE', certificate(spec));
}

/** PEM. */
export const authorities = {
  root: caCertificate(root, root),
  intermediate: caCertificate(issuing, root),
  foreign: caCertificate(foreign, foreign),
};

/** The identifier as the plugin's package nodeidentity writes it, or as go-tpm-tools reads it (`project first`). */
export function identifier(
  order: 'vm first' | 'project first',
  { name, ...rest }: typeof vm | Record<keyof typeof vm, string> = vm,
): Buffer {
  const machine = [der.integer(BigInt(rest.instanceId)), der.printable(name)];
  const project = [der.integer(BigInt(rest.projectNumber)), der.printable(rest.projectId)];
  const pairs = order === 'vm first' ? [...machine, ...project] : [...project, ...machine];
  return der.sequence(der.printable(rest.zone), ...pairs);
}

export const instanceIdentifier = '1.3.6.1.4.1.11129.2.1.21';

export function attestationCertificate(spec: CertificateSpec = {}): Buffer {
  const {
    key = keys.vm,
    identifier: stated = identifier('vm first'),
    usage = 0x80,
    extensions = [],
    issuer = issuing,
    ...rest
  } = spec;
  return certificate({
    ...rest,
    subject: vm.instanceId,
    spki: spkiOf(key),
    issuer,
    extensions: [
      { oid: '2.5.29.15', critical: true, value: der.bits(Buffer.of(usage)) },
      ...(stated === null ? [] : [{ oid: instanceIdentifier, value: stated }]),
      ...extensions,
    ],
  });
}

// ── Requests ────────────────────────────────────────────────────────────────────────────────────────────────────────

export type Block = readonly [label: string, content: Uint8Array];

/** What differs from the request of the true VM, which has no attestation certificate. */
export interface VmRequestSpec {
  readonly node?: string;
  readonly csr?: RequestSpec;
  readonly key?: TestKey;
  readonly attest?: AttestSpec;
  readonly attestBytes?: (usual: Buffer) => Uint8Array;
  readonly signer?: KeyObject;
  readonly signature?: (usual: Buffer) => Uint8Array;
  /** Text of the block; Go writes it without blanks. */
  readonly identity?: Partial<Record<keyof typeof vm, string>> | string;
  readonly certificate?: CertificateSpec | Uint8Array;
  readonly blocks?: (usual: readonly Block[]) => readonly Block[];
}

export function identityText(of: Partial<Record<keyof typeof vm, string>> = {}): string {
  const { zone, instanceId, name, projectNumber, projectId } = { ...vm, ...of };
  return `{"zone":"${zone}","id":${instanceId},"name":"${name}","project_id":${projectNumber},"project_name":"${projectId}"}`;
}

export function vmRequest(spec: VmRequestSpec = {}): string {
  const { node = vm.name, key = sharedKey('P-256'), signer = keys.vm, identity = {} } = spec;
  const request = makeRequest({ key, subject: { O: 'system:nodes', CN: `system:node:${node}` }, ...spec.csr });
  const stated = request.key.kind === 'P-256' ? certifiedName(request.key.spki) : new Uint8Array(34);
  const usual = attest(stated, spec.attest);
  const attestation = spec.attestBytes?.(usual) ?? usual;
  const signature = sign('sha256', attestation, signer);
  const { certificate: given } = spec;
  const certified = given === undefined || given instanceof Uint8Array ? given : attestationCertificate(given);
  const blocks: readonly Block[] = [
    ['CERTIFICATE REQUEST', request.der],
    ['ATTESTATION DATA', attestation],
    ['ATTESTATION SIGNATURE', spec.signature?.(signature) ?? signature],
    ['VM IDENTITY', Buffer.from(typeof identity === 'string' ? identity : identityText(identity))],
    ...(certified === undefined ? [] : [['ATTESTATION CERTIFICATE', certified] as const]),
  ];
  return (spec.blocks?.(blocks) ?? blocks).map(([label, content]) => pemBlock(label, content)).join('');
}
