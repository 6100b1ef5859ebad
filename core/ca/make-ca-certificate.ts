/** A new certificate of a CA as countersign.yaml describes it: self-signed, or signed by another CA of the cluster. */
import type { CaConfiguration, ImportedCa } from '../configuration/model/cluster.ts';
import type { Instant } from '../ports/instant.ts';
import type { Signer } from '../ports/signer.ts';
import { caValidity } from '../x509/ca-certificate.ts';
import { certificateFacts } from '../x509/read-certificate.ts';
import { serialFrom, serialOctets } from '../x509/validity.ts';
import { issueCaCertificate } from './issue-ca-certificate.ts';

export interface CaOrigin {
  readonly now: Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
}

/** A CA whose certificate Countersign makes. */
export type MadeCa = Exclude<CaConfiguration, ImportedCa>;

/** Each CA after the CA that issues its certificate. */
export function issuersFirst(cas: ReadonlyMap<string, CaConfiguration>): readonly CaConfiguration[] {
  const depth = (ca: CaConfiguration | undefined): number =>
    ca?.kind === 'issued' ? 1 + depth(cas.get(ca.issuedBy)) : 0;
  return [...cas.values()].sort((a, b) => depth(a) - depth(b));
}

/** `by`: the signer is the CA's own, or that of the CA with the certificate `issuer` (DER). Throws if the result is not usable. */
export async function makeCaCertificate(
  ca: MadeCa,
  spki: Uint8Array,
  by: { readonly signer: Signer; readonly issuer?: Uint8Array },
  { now, randomBytes }: CaOrigin,
): Promise<Uint8Array> {
  const { issuer } = by;
  const { notBefore, notAfter } = caValidity(now, ca.validitySeconds);
  const template = {
    subject: ca.subject,
    spki,
    serial: serialFrom(randomBytes(serialOctets)),
    notBefore,
    // Its leaves are valid only while the issuer is.
    notAfter: issuer === undefined ? notAfter : Math.min(notAfter, certificateFacts(issuer).notAfter),
    pathLength: ca.pathLen,
    ...(issuer === undefined ? {} : { issuer }),
  };
  return issueCaCertificate(template, by.signer);
}
