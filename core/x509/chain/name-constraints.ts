/**
 * Name constraints (RFC 5280 §4.2.1.10): a CA certificate limits the names in the certificates below it. DNS names, URIs and IP
 * addresses are judged. Constraints on other kinds of names are not, so a chain with such constraints is refused.
 */
import { childrenOf, contentOf, elementIn, derTag, isAscii } from '../../encoding/der-reader.ts';
import type { DerElement } from '../../encoding/der-reader.ts';
import type { SubjectAltNames } from '../model.ts';
import { ipOctets } from '../subject-alt-names.ts';

/** `value`: of the extension. The problem is a clause about the CA certificate; `undefined` = all names are permitted. */
export function checkNameConstraints(value: Uint8Array, names: readonly SubjectAltNames[]): string | undefined {
  const permitted: Subtree[] = [];
  const excluded: Subtree[] = [];
  const fields = childrenOf(elementIn(value), derTag.sequence) ?? [];
  for (const field of fields) {
    const subtrees = field.children.map(readSubtree);
    const known = subtrees.filter((subtree) => subtree !== undefined);
    if (![0xa0, 0xa1].includes(field.tag) || known.length === 0 || known.length < subtrees.length) return notJudged;
    (field.tag === 0xa0 ? permitted : excluded).push(...known);
  }
  if (fields.length === 0) return notJudged;
  for (const [kind, name] of names.flatMap(constrainedNames)) {
    const permits = permitted.filter((subtree) => subtree.kind === kind);
    const isConstrained = [...permits, ...excluded].some((subtree) => subtree.kind === kind);
    // §4.2.1.10: a URI whose host is not a domain name is not acceptable where URIs are constrained.
    if (isConstrained && kind === 'uri' && hostOf(name) === undefined) return forbids;
    if (permits.length > 0 && !permits.some((subtree) => contains(subtree, name))) return forbids;
    if (excluded.some((subtree) => subtree.kind === kind && contains(subtree, name))) return forbids;
  }
  return undefined;
}

const notJudged = 'has name constraints that are not judged here';
const forbids = 'does not permit a name below it (name constraints)';

type Kind = 'dns' | 'uri' | 'ip';

interface Subtree {
  readonly kind: Kind;
  readonly base: Uint8Array;
}

/** The tags of GeneralName (§4.2.1.6). */
const kinds: ReadonlyMap<number, Kind> = new Map([
  [0x82, 'dns'],
  [0x86, 'uri'],
  [0x87, 'ip'],
]);

/** GeneralSubtree ::= SEQUENCE { base GeneralName, minimum [0] DEFAULT 0, maximum [1] OPTIONAL }; the last two must be absent. */
function readSubtree(element: DerElement): Subtree | undefined {
  // Without a base: the element itself, which is of no kind.
  const [base = element, ...more] = childrenOf(element, derTag.sequence) ?? [];
  const kind = kinds.get(base.tag);
  if (kind === undefined || more.length > 0) return undefined;
  const content = contentOf(base);
  if (kind === 'ip' ? ![8, 32].includes(content.length) : !isAscii(content)) return undefined;
  return { kind, base: content };
}

function constrainedNames({ dns, uri, ip }: SubjectAltNames): readonly (readonly [Kind, string])[] {
  return [
    ...dns.map((name) => ['dns', name] as const),
    ...uri.map((name) => ['uri', name] as const),
    ...ip.map((name) => ['ip', name] as const),
  ];
}

function contains({ kind, base }: Subtree, name: string): boolean {
  const text = Buffer.from(base).toString('latin1').toLowerCase();
  switch (kind) {
    case 'dns': {
      const domain = text.startsWith('.') ? text.slice(1) : text;
      const isSelf = name.toLowerCase() === text;
      return text === '' || isSelf || name.toLowerCase().endsWith(`.${domain}`);
    }
    case 'uri': {
      // The constraint is about the host. A leading period stands for one or more labels.
      const host = hostOf(name) ?? '';
      return text.startsWith('.') ? host.endsWith(text) && host.length > text.length : host === text;
    }
    case 'ip':
      return isInBlock(ipOctets(name), base);
  }
}

/** Lower case; `undefined` if the URI has no host that is a domain name. */
function hostOf(uri: string): string | undefined {
  const [, host] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:@[\]]+)/.exec(uri) ?? [];
  return host !== undefined && /[A-Za-z]/.test(host) ? host.toLowerCase() : undefined;
}

/** `block`: address and mask. */
function isInBlock(address: Uint8Array, block: Uint8Array): boolean {
  const length = block.length / 2;
  return (
    address.length === length &&
    address.every((octet, index) => ((octet ^ (block[index] ?? 0)) & (block[length + index] ?? 0)) === 0)
  );
}
