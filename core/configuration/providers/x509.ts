/** The keys of `attestation.x509` in countersign.yaml, and what they mean (docs/attestation/x509.md). */
import { z } from 'zod';
import { nameKinds, parseNamePattern } from '../../policy/name-templates.ts';
import type { NameKind, NodeNameTemplate } from '../../policy/name-templates.ts';
import { decodeRoot } from '../../x509/chain/chain-certificate.ts';
import { isExtendedUsage, isKnownUsage, usageTable } from '../../x509/key-usages.ts';
import type { Place } from '../fields/place.ts';
import { flag, matching, text } from '../fields/values.ts';
import { checkIntermediates, nodeNameTemplate, readAnchor } from './anchors.ts';

const certificate = z.string().max(16_384);
const pattern = z.string().min(1).max(512);

const rule = z.strictObject({
  root: text.describe(
    'The name of the root to which the chain of the certificate must lead: a key of `roots`. Required.',
  ),
  uri: pattern
    .exactOptional()
    .describe(
      'The URI in the certificate (subjectAltName), with parts in braces: `spiffe://prod.example/node/{node}`. A part is one path segment. Exactly one of `uri`, `cn` and `dns` is required; it is the identity of the machine.',
    ),
  cn: pattern
    .exactOptional()
    .describe('The common name of the subject: `{node}.prod.example`. A part is one label, without dots.'),
  dns: pattern
    .exactOptional()
    .describe('A DNS name in the certificate (subjectAltName), in lower case. A part is one label, without dots.'),
  nodeName: z
    .array(z.string().min(1).max(300))
    .default([])
    .describe(
      'What the machine may be called, any of them. Required. A template with the parts of the name, such as `{node}`; or `pattern:<name with *>`: any such name, first come, first served.',
    ),
  addresses: flag(
    false,
    'Whether the IP addresses in the certificate belong to the machine, so that a serving certificate may hold them.',
  ),
  dnsNames: flag(false, 'Whether the DNS names in the certificate belong to the machine. Wildcards never do.'),
  extKeyUsage: z
    .string()
    .max(64)
    .default('client auth')
    .describe(
      'The extended key usage that the certificate must have: the name of a usage (`client auth`, `server auth` …) or an OID. `unchecked`: none, for certificates without this extension.',
    ),
});

export const x509Keys = z.strictObject({
  roots: z
    .record(
      matching(
        /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/,
        'must be a name of lower-case letters, digits, dots and dashes',
      ),
      z.array(certificate).min(1, 'must hold at least one certificate').max(16),
    )
    .default({})
    .describe(
      'Root certificates (PEM) by a name that you choose. Required. The name is part of the identity of each machine, so never change it. Several certificates under one name are one root that is being replaced: each of them may name every machine of this root.',
    ),
  intermediates: z
    .array(certificate)
    .max(64)
    .default([])
    .describe('Intermediate CA certificates (PEM), besides those that nodes send.'),
  rules: z.array(rule).max(64).default([]).describe('Which certificates are machines. Required.'),
});

type X509AttestationInput = z.infer<typeof x509Keys>;
type RuleInput = z.infer<typeof rule>;

export interface X509Attestation {
  readonly roots: readonly X509Root[];
  readonly intermediates: readonly string[];
  readonly rules: readonly X509Rule[];
}

export interface X509Root {
  /** Part of the identity of every machine under this root. */
  readonly name: string;
  /** PEM. */
  readonly certificates: readonly string[];
}

export interface X509Rule {
  /** The name of one of `roots`. */
  readonly root: string;
  readonly kind: NameKind;
  /** A pattern of core/policy/name-templates.ts. */
  readonly pattern: string;
  readonly nodeName: readonly NodeNameTemplate[];
  readonly addresses: boolean;
  readonly dnsNames: boolean;
  /** OID; absent = not checked. */
  readonly extKeyUsage?: string;
}

/** `at`: the key `x509` under `attestation`. */
export function resolveX509({ roots, intermediates, rules }: X509AttestationInput, at: Place): X509Attestation {
  if (Object.keys(roots).length === 0) at('roots').error('is required and must name a root');
  if (rules.length === 0) at('rules').error('is required: which certificates are machines?');
  checkRoots(roots, at('roots'));
  checkIntermediates(intermediates, at);
  const resolved = rules.map((input, index) => resolveRule(input, roots, at('rules', index)));
  resolved.forEach(({ root, kind, pattern: text }, index) => {
    const first = resolved.findIndex((other) => other.root === root && other.kind === kind && other.pattern === text);
    if (first < index)
      at('rules', index).error(`matches the certificates of rule ${first + 1}: no certificate could join`);
  });
  const named = Object.entries(roots).map(([name, certificates]) => ({ name, certificates }));
  return { roots: named, intermediates, rules: resolved };
}

/** With one key under two names, one certificate would be two machines. */
function checkRoots(roots: X509AttestationInput['roots'], at: Place): void {
  const seen = new Map<string, string>();
  for (const [name, texts] of Object.entries(roots))
    texts.forEach((pem, index) => {
      const certificate = readAnchor(pem, decodeRoot, at(name, index));
      const key = certificate === undefined ? pem : Buffer.from(certificate.key.spki).toString('hex');
      const other = seen.get(key) ?? name;
      seen.set(key, name);
      if (other !== name) at(name, index).error(`has the key of root ${other}`);
    });
}

function resolveRule(input: RuleInput, roots: X509AttestationInput['roots'], at: Place): X509Rule {
  const { root, nodeName, addresses, dnsNames, extKeyUsage } = input;
  if (!Object.hasOwn(roots, root)) at('root').error('is not a key of roots');
  const given = nameKinds.flatMap((kind) => (input[kind] === undefined ? [] : [[kind, input[kind]] as const]));
  const [[kind, text] = ['uri', ''] as const] = given;
  if (given.length !== 1) at.error('needs exactly one of uri, cn and dns: the name that identifies the machine');
  const parsed = parseNamePattern(kind, text);
  if (given.length === 1 && !parsed.ok) at(kind).error(parsed.problem);
  const parts = parsed.ok ? parsed.value.parts : [];
  if (nodeName.length === 0)
    at('nodeName').error('is required: what may the machine be called? For example ["{node}"]');
  const purpose = extKeyUsageOf(extKeyUsage);
  if (purpose === undefined) at('extKeyUsage').error('is no extended key usage: for example client auth, or an OID');
  return {
    root,
    kind,
    pattern: text,
    nodeName: nodeName.map((name, index) => nodeNameTemplate(name, parts, at('nodeName', index))),
    addresses,
    dnsNames,
    ...(purpose === undefined || purpose === unchecked ? {} : { extKeyUsage: purpose }),
  };
}

const unchecked = 'unchecked';

/** OID, or `unchecked`. */
function extKeyUsageOf(value: string): string | undefined {
  if (value === unchecked || /^[0-2](\.(0|[1-9][0-9]*))+$/.test(value)) return value;
  // `any` as a usage means a certificate for every purpose, and not a certificate for any.
  if (!isKnownUsage(value) || !isExtendedUsage(value) || value === 'any') return undefined;
  const meaning = usageTable[value];
  return 'extKeyUsage' in meaning ? meaning.extKeyUsage : undefined;
}
