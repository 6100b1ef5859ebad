/**
 * A request as a tree of tag, length and content that can be changed anywhere and written out again, right or wrong.
 * Reads only what the tests themselves made; the product's own reader is what it is used against.
 */
import { length as lengthOctets } from '../../harness/x509/der-writer.ts';

export interface Tlv {
  /** Identifier octets; empty together with `length` for bytes that stand as they are. */
  readonly identifier: Uint8Array;
  /** Instead of the one that fits. */
  readonly length?: Uint8Array;
  readonly content: Uint8Array | readonly Tlv[];
}

export type Path = readonly number[];

/** Bytes in place of an element. */
export function raw(bytes: Uint8Array): Tlv {
  return { identifier: Buffer.alloc(0), length: Buffer.alloc(0), content: bytes };
}

/** Reads well-formed DER; OCTET STRINGs and BIT STRINGs that hold a SEQUENCE are read too. */
export function toTree(bytes: Uint8Array): Tlv {
  const [node, ...more] = elements(Buffer.from(bytes)) ?? [];
  if (node === undefined || more.length > 0) throw new Error('not one DER element');
  return node;
}

function elements(bytes: Buffer): Tlv[] | undefined {
  const found: Tlv[] = [];
  for (let offset = 0; offset < bytes.length;) {
    const identifier = bytes.subarray(offset, offset + 1);
    const first = bytes[offset + 1];
    if (first === undefined) return undefined;
    const octets = first < 0x80 ? 0 : first - 0x80;
    if (octets > 4 || offset + 2 + octets > bytes.length || first === 0x80) return undefined;
    const start = offset + 2 + octets;
    const end = start + (octets === 0 ? first : bytes.readUIntBE(offset + 2, octets));
    if (end > bytes.length) return undefined;
    found.push({ identifier, content: inside(identifier[0] ?? 0, bytes.subarray(start, end)) });
    offset = end;
  }
  return found;
}

function inside(tag: number, content: Buffer): Buffer | readonly Tlv[] {
  if ((tag & 0x20) !== 0) return elements(content) ?? content;
  const wraps = tag === 0x04 && content[0] === 0x30;
  const bits = tag === 0x03 && content[0] === 0 && content[1] === 0x30;
  if (wraps) return elements(content) ?? content;
  const inner = bits ? elements(content.subarray(1)) : undefined;
  return inner === undefined ? content : [raw(Buffer.from([0])), ...inner];
}

export function toBytes({ identifier, length, content }: Tlv): Buffer {
  const body = contentBytes(content);
  return Buffer.concat([identifier, length ?? lengthOctets(body.length), body]);
}

function contentBytes(content: Uint8Array | readonly Tlv[]): Buffer {
  return content instanceof Uint8Array ? Buffer.from(content) : Buffer.concat(content.map(toBytes));
}

export function bodyOf(node: Tlv): Buffer {
  return contentBytes(node.content);
}

export function nodeAt(tree: Tlv, path: Path): Tlv {
  let node = tree;
  for (const index of path) {
    const child = node.content instanceof Uint8Array ? undefined : node.content[index];
    if (child === undefined) throw new Error(`nothing at ${path.join('.')}`);
    node = child;
  }
  return node;
}

/** The tree with what `edit` gives in place of the node at `path`: nothing, one element or several. */
export function editAt(tree: Tlv, path: Path, edit: (node: Tlv) => readonly Tlv[]): Tlv {
  const [index, ...rest] = path;
  if (index === undefined) {
    const [only, ...more] = edit(tree);
    // Of the outermost element several can stand in a row as well.
    return only !== undefined && more.length === 0 ? only : raw(Buffer.concat(edit(tree).map(toBytes)));
  }
  if (tree.content instanceof Uint8Array) throw new Error(`nothing at ${path.join('.')}`);
  const content = tree.content.flatMap((child, i) => {
    if (i !== index) return [child];
    return rest.length === 0 ? edit(child) : [editAt(child, rest, edit)];
  });
  return { ...tree, content };
}

/** Paths of all nodes, outermost first. */
export function pathsOf(tree: Tlv, path: Path = []): Path[] {
  const children = tree.content instanceof Uint8Array ? [] : tree.content;
  return [path, ...children.flatMap((child, i) => (child.identifier.length === 0 ? [] : pathsOf(child, [...path, i])))];
}

/** The same content under other identifier octets. */
export const retag =
  (...identifier: readonly number[]) =>
  (node: Tlv): readonly Tlv[] => [{ ...node, identifier: Buffer.from(identifier) }];

/** The same content behind other length octets. */
export const relength =
  (...octets: readonly number[]) =>
  (node: Tlv): readonly Tlv[] => [{ ...node, length: Buffer.from(octets) }];

/** Other content, the length to fit. */
export const refill =
  (content: Uint8Array) =>
  (node: Tlv): readonly Tlv[] => [{ identifier: node.identifier, content }];

/** Bytes behind the last child, inside the element. */
export const append =
  (...bytes: readonly number[]) =>
  (node: Tlv): readonly Tlv[] => [
    { identifier: node.identifier, content: Buffer.concat([bodyOf(node), Buffer.from(bytes)]) },
  ];
