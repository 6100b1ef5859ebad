/**
 * Writes DER with asn1js, piece by piece: every piece is finished bytes, and a larger one is made of smaller ones. So
 * what was given as bytes (a key, a name, a recorded TBS) goes into the certificate as those bytes; parsed and written
 * anew it might not come out as what was checked.
 */
import * as asn1js from 'asn1js';

/** A primitive element: one asn1js block. */
export function encode(block: asn1js.BaseBlock): Uint8Array {
  return new Uint8Array(block.toBER());
}

export function sequence(...parts: readonly Uint8Array[]): Uint8Array {
  return constructed(universal, 16, parts);
}

/** SET OF: its members in ascending order of their encodings (X.690 §11.6). */
export function setOf(...parts: readonly Uint8Array[]): Uint8Array {
  return constructed(
    universal,
    17,
    [...parts].sort((a, b) => Buffer.compare(a, b)),
  );
}

/** `[n]` around another element. */
export function explicit(tagNumber: number, part: Uint8Array): Uint8Array {
  return constructed(contextSpecific, tagNumber, [part]);
}

/** `[n]` in place of a primitive type's own tag. */
export function implicit(tagNumber: number, content: Uint8Array): Uint8Array {
  return encode(new asn1js.Primitive({ idBlock: { tagClass: contextSpecific, tagNumber }, valueHex: content }));
}

const universal = 1;
const contextSpecific = 3;

function constructed(tagClass: number, tagNumber: number, parts: readonly Uint8Array[]): Uint8Array {
  const block = new asn1js.Primitive({ idBlock: { tagClass, tagNumber }, valueHex: Buffer.concat(parts) });
  // asn1js makes constructed elements out of blocks only; a primitive one with their bit holds finished bytes.
  block.idBlock.isConstructed = true;
  return encode(block);
}

const objectIdentifiers = new Map<string, Uint8Array>();

/** For the few OIDs we write ourselves: each is encoded once, since that costs asn1js more than all around it. */
export function objectIdentifier(value: string): Uint8Array {
  const der = objectIdentifiers.get(value) ?? encode(new asn1js.ObjectIdentifier({ value }));
  objectIdentifiers.set(value, der);
  return der;
}
