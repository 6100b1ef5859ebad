/** Resolves the CAs of a cluster: where each has its certificate and its key from. */
import type { Place } from '../fields/place.ts';
import { seconds } from '../fields/values.ts';
import { algorithmsOfKey } from '../../ports/signer.ts';
import type { SignatureAlgorithm } from '../../ports/signer.ts';
import type { CaConfiguration } from '../model/cluster.ts';
import type { CaInput } from '../schema/cluster.ts';

const longestCaSeconds = 365_000 * 86_400;

/** `at`: the CA. */
export function resolveCa(name: string, input: CaInput, at: Place): CaConfiguration {
  const { kind, keySpec, pathLen, issuedBy } = input;
  const algorithms: readonly SignatureAlgorithm[] = algorithmsOfKey[keySpec];
  const signatureAlgorithm = input.signatureAlgorithm ?? algorithmsOfKey[keySpec][0];
  if (!algorithms.includes(signatureAlgorithm))
    at('signatureAlgorithm').error(`a ${keySpec} key signs with ${algorithms.join(', ')}`);
  // The issuer name cannot be changed later, and a default would be the same for two clusters.
  if (input.subject.commonName === undefined) at('subject', 'commonName').error('is required');
  const subject = { commonName: name, ...input.subject };
  const validitySeconds = seconds(input.validity ?? '3650d');
  if (validitySeconds > longestCaSeconds)
    at('validity').error(
      'must be at most 365000d, a thousand years: a certificate ends in the year 9999 at the latest',
    );
  if (issuedBy !== undefined && kind !== 'issued') at('issuedBy').error('is for CAs of kind: issued');
  if (input.keyMaterial !== undefined && kind !== 'imported')
    at('keyMaterial').error('is for CAs of kind: imported, since an existing key has a certificate');
  const common = {
    name,
    keySpec,
    signatureAlgorithm,
    subject,
    pathLen,
    ...(input.replaces === undefined ? {} : { replaces: input.replaces }),
    ...(input.crlDistributionPoint === undefined ? {} : { crlDistributionPoint: input.crlDistributionPoint }),
  };
  switch (kind) {
    case 'selfSigned':
      return { ...common, kind, validitySeconds };
    case 'issued':
      if (issuedBy === undefined) at('issuedBy').error('is required: the CA that signs the certificate of this one');
      return { ...common, kind, issuedBy: issuedBy ?? '', validitySeconds };
    case 'imported':
      if (input.validity !== undefined)
        at('validity').error('has no effect: the CA that signs the certificate decides it');
      return { ...common, kind, keyMaterial: input.keyMaterial ?? 'kms' };
  }
}

/** `at`: the map of CAs. */
export function checkIssuers(cas: ReadonlyMap<string, CaConfiguration>, at: Place): void {
  for (const ca of cas.values()) {
    if (ca.kind !== 'issued' || ca.issuedBy === '') continue;
    const here = at(ca.name, 'issuedBy');
    const issuer = cas.get(ca.issuedBy);
    if (issuer === undefined) here.error(`no CA of this cluster has that name (${[...cas.keys()].join(', ')})`);
    else if (isInCircle(ca, cas)) here.error('leads to no root: these CAs issue each other');
    else if (issuer.pathLen <= ca.pathLen)
      here.error(
        `needs pathLen ${ca.pathLen + 1} or more in CA ${issuer.name}: its certificate must permit this CA below it`,
      );
    else if (sameName(issuer.subject, ca.subject))
      here.error('has the same subject: verifiers tell CAs apart by their names');
  }
}

/** `at`: the map of CAs. Each CA has at most one predecessor and one successor, so old and new form a line. */
export function checkSuccessors(cas: ReadonlyMap<string, CaConfiguration>, at: Place): void {
  for (const ca of cas.values()) {
    if (ca.replaces === undefined) continue;
    const here = at(ca.name, 'replaces');
    const other = [...cas.values()].find(({ name, replaces }) => name !== ca.name && replaces === ca.replaces);
    const old = replacedBy(ca, cas);
    const related = old.find((each) => isAbove(each, ca, cas) || isAbove(ca, each, cas));
    if (!cas.has(ca.replaces)) here.error(`no CA of this cluster has that name (${[...cas.keys()].join(', ')})`);
    else if (old.includes(ca)) here.error('leads back to this CA: a CA replaces an older one');
    else if (other !== undefined) here.error(`CA ${other.name} replaces it too: a CA has one successor`);
    else if (related !== undefined)
      here.error(
        `one of ${ca.name} and ${related.name} issues the other: clients of both would be accepted from every CA below the upper one`,
      );
    else checkNames(ca, old, here);
  }
}

/** Among CAs of one name OpenSSL selects by subjectKeyIdentifier. If they have no such extension, it tries only one of them. */
function checkNames(ca: CaConfiguration, old: readonly CaConfiguration[], at: Place): void {
  const namesake = old.find(({ subject }) => sameName(subject, ca.subject));
  if (namesake === undefined) return;
  const existing = [ca, namesake].find((each) => each.kind === 'imported' && each.keyMaterial === 'imported');
  if (existing !== undefined)
    at.warning(
      `CA ${namesake.name} has the same subject: the certificate of ${existing.name} then needs a subjectKeyIdentifier, by which OpenSSL and Node tell the two apart`,
    );
}

/** The CAs that this one follows, the latest first; with this one itself at the end if they form a circle with it. */
function replacedBy(ca: CaConfiguration, cas: ReadonlyMap<string, CaConfiguration>): readonly CaConfiguration[] {
  const old = new Set<CaConfiguration>();
  let next = cas.get(ca.replaces ?? '');
  while (next !== undefined && !old.has(next)) {
    old.add(next);
    next = cas.get(next.replaces ?? '');
  }
  return [...old];
}

/** Whether `upper` issued `lower`, directly or by way of others. */
export function isAbove(
  upper: CaConfiguration,
  lower: CaConfiguration,
  cas: ReadonlyMap<string, CaConfiguration>,
): boolean {
  const seen = new Set<CaConfiguration>();
  let ca: CaConfiguration | undefined = lower;
  while (ca?.kind === 'issued' && !seen.has(ca)) {
    seen.add(ca);
    ca = cas.get(ca.issuedBy);
    if (ca === upper) return true;
  }
  return false;
}

function isInCircle(start: CaConfiguration, cas: ReadonlyMap<string, CaConfiguration>): boolean {
  const seen = new Set<string>();
  let ca: CaConfiguration | undefined = start;
  while (ca?.kind === 'issued' && !seen.has(ca.name)) {
    seen.add(ca.name);
    ca = cas.get(ca.issuedBy);
  }
  return ca !== undefined && seen.has(ca.name);
}

function sameName(a: CaConfiguration['subject'], b: CaConfiguration['subject']): boolean {
  const keys = ['commonName', 'organization', 'organizationalUnit', 'country'] as const;
  return keys.every((key) => a[key] === b[key]);
}
