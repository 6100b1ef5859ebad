/** What several providers read in the same way: certificates of the operator, patterns of node names. */
import { decodeCertificate, decodePemCertificate, decodeRoot } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { templateParts } from '../../policy/name-templates.ts';
import type { NodeNameTemplate } from '../../policy/name-templates.ts';
import { isSubdomain } from '../../policy/patterns.ts';
import type { Place } from '../fields/place.ts';

/** Each text must be the certificate (PEM) of one CA, as providers read it. `at`: of the provider. */
export function checkAnchors(
  { roots, intermediates }: { readonly roots: readonly string[]; readonly intermediates: readonly string[] },
  at: Place,
): void {
  if (roots.length === 0 && intermediates.length > 0) at('intermediates').error('lead to no root: name roots');
  roots.forEach((pem, index) => readAnchor(pem, decodeRoot, at('roots', index)));
  checkIntermediates(intermediates, at);
}

export function checkIntermediates(intermediates: readonly string[], at: Place): void {
  intermediates.forEach((pem, index) => readAnchor(pem, decodeCertificate, at('intermediates', index)));
}

/** `undefined` after an error. */
export function readAnchor(pem: string, decode: typeof decodeRoot, at: Place): ChainCertificate | undefined {
  const decoded = decodePemCertificate(pem, decode);
  if (!decoded.ok) at.error(decoded.problem);
  else if (decoded.value.basicConstraints?.isCa !== true) at.error('is not the certificate of a CA');
  return decoded.ok ? decoded.value : undefined;
}

/** A pattern of node names, checked. */
export function nodeNamePattern(pattern: string, at: Place): string {
  // `*` can match one letter, so the pattern with a letter in its place must be a valid name of a Node.
  if (!isSubdomain(pattern.replaceAll('*', 'x'))) at.error('is not the name of a node or a pattern of one');
  else if (/^\*+$/.test(pattern)) at.warning('any machine that may join can take any node name that is not yet taken');
  return pattern;
}

/** A template of node names with some of these parts, or `pattern:` and a pattern; checked. */
export function nodeNameTemplate(text: string, parts: readonly string[], at: Place): NodeNameTemplate {
  if (text.startsWith('pattern:'))
    return { kind: 'pattern', pattern: nodeNamePattern(text.slice('pattern:'.length), at) };
  const used = templateParts(text);
  const unknown = used?.find((name) => !parts.includes(name));
  if (unknown !== undefined) at.error(`uses the part {${unknown}}, which does not exist here`);
  else if (used === undefined || !isSubdomain(text.replaceAll(/\{[^}]*\}/g, 'x')))
    at.error(`is not the name of a node: use the parts, such as {${parts[0] ?? 'node'}}, or pattern:<name with *>`);
  return { kind: 'template', template: text };
}
