/** When a CA gets a new CRL, and which certificates are in it. */
import type { Instant } from '../ports/instant.ts';
import type { CrlStore, ListedRevocation, RevocationStore, StoredCrl } from '../ports/revocations.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import { backdatingSeconds } from '../x509/validity.ts';
import { issueCrl, maySignCrls } from './issue-crl.ts';

export interface CrlPorts {
  readonly revocations: RevocationStore;
  readonly crls: CrlStore;
  readonly now: () => Instant;
}

const day = 86_400_000;
/** How long a CRL is valid. The ca function may fail for six days until relying parties have none. */
export const crlValidityMilliseconds = 7 * day;
/** A CRL that is older is replaced, even if it would not change. */
const renewalMilliseconds = day;
/** Other calls issue a CRL at the same moment. */
const maxTries = 3;

export interface RenewedCrl {
  readonly issued: boolean;
  readonly crl: StoredCrl;
}

/**
 * The CRL of this CA, issued again if revocations are missing in it or if it is a day old. For a CA that may not sign CRLs the list
 * alone is stored, which the relays need. `serials` are revocations that the caller
 * has just stored, of this CA or of others, which `list` may not have yet.
 */
export async function renewCrl(
  authority: Authority,
  serials: readonly string[],
  { revocations, crls, now }: CrlPorts,
): Promise<RenewedCrl> {
  const { keyId } = authority.signer;
  for (let tries = 1; ; tries += 1) {
    const current = await crls.findCrl(keyId);
    const revoked = await revokedNow(keyId, serials, current, { revocations, now });
    const at = now();
    if (current !== undefined && at < current.thisUpdate + renewalMilliseconds && covers(current, revoked))
      return { issued: false, crl: current };
    const template = {
      number: (current?.number ?? 0) + 1,
      // As with certificates: a relying party whose clock is late must accept it.
      thisUpdate: at - backdatingSeconds * 1000,
      nextUpdate: at + crlValidityMilliseconds,
    };
    const signed = maySignCrls(authority) ? await issueCrl({ ...template, entries: revoked }, authority) : {};
    const crl: StoredCrl = { caKeyId: keyId, ...template, revoked, ...signed };
    if (await crls.putCrl(crl)) return { issued: true, crl };
    if (tries === maxTries) throw new Error(`other calls issue the CRL of CA ${authority.name} at the same time`);
  }
}

/**
 * The unexpired revocations: those of the list, of the CRL before, and of `serials`. An entry that the list lacks for a moment must
 * not vanish from the CRL.
 */
async function revokedNow(
  keyId: string,
  serials: readonly string[],
  current: StoredCrl | undefined,
  { revocations, now }: Pick<CrlPorts, 'revocations' | 'now'>,
): Promise<readonly ListedRevocation[]> {
  const bySerial = new Map<string, ListedRevocation>();
  for (const each of current?.revoked ?? []) bySerial.set(each.serial, each);
  for (const serial of serials) {
    const found = await revocations.find(keyId, serial);
    if (found !== undefined) bySerial.set(serial, found);
  }
  for await (const each of revocations.list(keyId, now())) bySerial.set(each.serial, each);
  return [...bySerial.values()]
    .filter(({ notAfter }) => notAfter > now())
    .map(({ serial, fingerprint, notAfter, reason, at }) => ({ serial, fingerprint, notAfter, reason, at }));
}

function covers({ revoked }: StoredCrl, wanted: readonly ListedRevocation[]): boolean {
  const known = new Set(revoked.map(({ serial }) => serial));
  return wanted.every(({ serial }) => known.has(serial));
}
