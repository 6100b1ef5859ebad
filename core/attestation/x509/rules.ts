/**
 * Which machine a certificate names, by the operator's rules. The identity is made of the root's name, the kind of name and the whole
 * name, so two subjects or two roots never give one identity, and a renewed certificate gives the same one.
 */
import type { X509Rule } from '../../configuration/providers/x509.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { matchName, nameKinds, nodeNamesOf, parseNamePattern } from '../../policy/name-templates.ts';
import type { NameKind } from '../../policy/name-templates.ts';
import { isHostName } from '../../policy/patterns.ts';
import type { Machine } from '../evidence/provider.ts';
import type { CertificateNames } from '../../x509/chain/chain-certificate.ts';

export interface MatchedRule {
  readonly rule: X509Rule;
  readonly identity: string;
  readonly machine: Machine;
}

/** Longer names match no rule: `countersign lock` takes identities of up to 500 characters. */
const longestName = 400;

/**
 * The one rule of this root that matches the names of a certificate. A certificate that two rules match, or that two names of it
 * match, could be two machines.
 */
export function matchRules(
  rules: readonly X509Rule[],
  root: string,
  names: CertificateNames,
): Result<MatchedRule, string> {
  const matches: MatchedRule[] = [];
  for (const rule of rules.filter((each) => each.root === root)) {
    const values = namesOf(rule.kind, names);
    const matching = values.flatMap((value) => matchOf(rule, value) ?? []);
    const [match] = matching;
    if (match === undefined) continue;
    // SPIFFE X509-SVID §2 permits one URI. Of several common names, each program takes another one.
    if (matching.length > 1 || (rule.kind !== 'dns' && values.length > 1))
      return failure(`the certificate has more than one ${kindNames[rule.kind]}`);
    matches.push({ ...match, machine: { ...match.machine, ...ownNames(rule, names) } });
  }
  const [match, ...more] = matches;
  if (match === undefined)
    return failure(`no rule for certificates of root ${quoted(root)} matches a name of this certificate`);
  return more.length > 0 ? failure('more than one rule matches this certificate') : success(match);
}

/** The machine of a recorded identity, without its certificate; `undefined` if not exactly one rule gives this identity today. */
export function describeIdentity(rules: readonly X509Rule[], identity: string): Machine | undefined {
  const [, root, kind, value = ''] = /^x509#([^/]+)\/([a-z]+)\/(.*)$/.exec(identity) ?? [];
  const matches = rules
    .filter((rule) => rule.root === root && rule.kind === kind)
    .flatMap((rule) => matchOf(rule, value) ?? []);
  return matches.length === 1 ? matches[0]?.machine : undefined;
}

const kindNames: Readonly<Record<NameKind, string>> = { uri: 'URI', cn: 'common name', dns: 'matching DNS name' };

/** The names of this kind, each once. */
function namesOf(kind: NameKind, { cn, sans }: CertificateNames): readonly string[] {
  switch (kind) {
    case 'uri':
      return sans.uri;
    case 'cn':
      return cn ?? [];
    case 'dns':
      return [...new Set(sans.dns.map((name) => name.toLowerCase()))];
  }
}

function matchOf(rule: X509Rule, value: string): MatchedRule | undefined {
  const pattern = parseNamePattern(rule.kind, rule.pattern);
  const parts = pattern.ok && value.length <= longestName ? matchName(pattern.value, value) : undefined;
  if (parts === undefined) return undefined;
  const identity = `x509#${rule.root}/${rule.kind}/${value}`;
  const machine = {
    identity,
    providerId: providerIdOf(value),
    nodeNames: nodeNamesOf(rule.nodeName, parts),
    addresses: [],
    dnsNames: [],
  };
  return { rule, identity, machine };
}

/** The addresses and DNS names of the certificate, where the rule says that they belong to the machine. */
function ownNames(rule: X509Rule, { sans }: CertificateNames): Pick<Machine, 'addresses' | 'dnsNames'> {
  return {
    addresses: rule.addresses ? [...new Set(sans.ip)] : [],
    dnsNames: rule.dnsNames ? [...new Set(sans.dns.map((name) => name.toLowerCase()))].filter(isHostName) : [],
  };
}

/** The providerID of a node with this name in its certificate. */
export function providerIdOf(value: string): string {
  return `x509:///${value}`;
}

/** The name by which a node calls itself, if its operator does not choose the kind: its URI, else its common name or DNS name. */
export function usualName(names: CertificateNames, kinds: readonly NameKind[] = nameKinds): string | undefined {
  return kinds.flatMap((kind) => namesOf(kind, names))[0];
}
