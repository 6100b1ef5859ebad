/** A CA certificate under an intermediate and a root, right or with one mistake, to import. */
import type { KeyObject } from 'node:crypto';
import { toPem } from '../../../core/encoding/pem.ts';
import * as der from './der-writer.ts';
import {
  basicConstraints,
  keyIdentifiers,
  keyOf,
  keyUsage,
  name,
  spkiOf,
  writeCertificate,
} from './certificate-writer.ts';
import type { CertificateSpec } from './certificate-writer.ts';

export const importNow = Date.parse('2026-06-01T12:00:00Z');
const day = 86_400_000;

export interface PathSpec {
  readonly own?: Partial<CertificateSpec>;
  readonly middle?: Partial<CertificateSpec>;
  readonly root?: Partial<CertificateSpec>;
}

export interface PathPems {
  readonly certificate: string;
  readonly chain: string;
  readonly root: string;
}

export const pathKeys = { own: keyOf('imported CA'), middle: keyOf('middle CA'), root: keyOf('root CA') };

/** The extensions of a CA certificate; an argument replaces one, `null` leaves it out. */
export function caExtensions(
  key: KeyObject,
  issuer: KeyObject,
  change: {
    readonly constraints?: Uint8Array | null;
    readonly usage?: Uint8Array | null;
    readonly identifiers?: readonly Uint8Array[];
    readonly more?: readonly Uint8Array[];
  } = {},
): Uint8Array[] {
  const { constraints = basicConstraints(true), usage = keyUsage(5, 6) } = change;
  return [
    ...(constraints === null ? [] : [constraints]),
    ...(usage === null ? [] : [usage]),
    ...(change.identifiers ?? keyIdentifiers(keyId(key), key === issuer ? undefined : keyId(issuer))),
    ...(change.more ?? []),
  ];
}

export const keyId = (key: KeyObject): Buffer => spkiOf(key).subarray(-20);

export function pathDer({ own = {}, middle = {}, root = {} }: PathSpec = {}): {
  readonly own: Buffer;
  readonly middle: Buffer;
  readonly root: Buffer;
} {
  const dates = { notBefore: importNow - day, notAfter: importNow + 365 * day };
  const keys = {
    own: own.key ?? pathKeys.own,
    middle: middle.key ?? pathKeys.middle,
    root: root.key ?? pathKeys.root,
  };
  return {
    own: writeCertificate({
      subject: name('prod nodes'),
      issuer: name('Corp Middle'),
      key: keys.own,
      signer: keys.middle,
      ...dates,
      extensions: caExtensions(keys.own, keys.middle, { constraints: basicConstraints(true, 0) }),
      ...own,
    }),
    middle: writeCertificate({
      subject: name('Corp Middle'),
      issuer: name('Corp Root'),
      key: keys.middle,
      signer: keys.root,
      ...dates,
      extensions: caExtensions(keys.middle, keys.root, { constraints: basicConstraints(true, 1) }),
      ...middle,
    }),
    root: writeCertificate({
      subject: name('Corp Root'),
      issuer: name('Corp Root'),
      key: keys.root,
      signer: keys.root,
      ...dates,
      extensions: caExtensions(keys.root, keys.root),
      ...root,
    }),
  };
}

export function pathPems(spec: PathSpec = {}): PathPems {
  const { own, middle, root } = pathDer(spec);
  return { certificate: pem(own), chain: pem(middle), root: pem(root) };
}

export const pem = (bytes: Uint8Array): string => toPem('CERTIFICATE', bytes);

/** An extension of our own that no program knows. */
export const unknownExtension = (critical: boolean): Buffer =>
  der.sequence(der.oid('1.3.6.1.4.1.99999.1'), ...(critical ? [der.boolean(true)] : []), der.octets(der.nothing()));
