/**
 * The CRLs of the CAs. The schedule of the stack asks for it every six hours, and `countersign cert revoke` right after a revocation. A CRL is
 * signed only if it would change or is a day old, so each call can be repeated.
 */
import type { CaFault } from '../../../core/ca/authority.ts';
import { loadAuthority } from '../../../core/ca/authority.ts';
import type { CaConfiguration } from '../../../core/configuration/model/cluster.ts';
import { renewCrl } from '../../../core/revocation/renew-crl.ts';
import type { CaAction } from './action.ts';
import { forEachCa, isExpected } from './cas.ts';
import type { CaPorts } from './ports.ts';

export interface CrlRequest {
  /** Without it: all CAs of the cluster. */
  readonly ca?: string;
  /** Serial numbers of revocations that the caller has just stored: the index of the table may not have them yet. */
  readonly serials: readonly string[];
}

export interface CrlsAnswer {
  readonly cluster: string;
  readonly crls: readonly CrlAnswer[];
}

export type CrlAnswer =
  | {
      readonly ok: true;
      readonly name: string;
      /** `Signer.keyId`, under which its revocations are stored. */
      readonly keyId: string;
      /** False if the CRL is the one before this call. */
      readonly issued: boolean;
      /** False if the certificate of the CA does not permit CRLs: the list is kept for the relays, and there is no CRL. */
      readonly signed: boolean;
      readonly number: number;
      /** Milliseconds since 1970. */
      readonly nextUpdate: number;
      readonly entries: number;
      /** Those of the request that it revokes. */
      readonly serials: readonly string[];
    }
  | { readonly ok: false; readonly name: string; readonly why: CaFault | 'UnknownCa'; readonly message: string };

/** As many as one call of `countersign cert revoke` sends at once; 40 octets each stay far below the size of an event. */
const maxSerials = 1_000;

export const crl: CaAction<CrlRequest, CrlsAnswer> = {
  decode({ ca, serials = [], ...others }) {
    if (Object.keys(others).length > 0 || (ca !== undefined && typeof ca !== 'string')) return undefined;
    if (!Array.isArray(serials) || serials.length > maxSerials || !serials.every(isSerial)) return undefined;
    return ca === undefined ? { serials } : { ca, serials };
  },
  async run({ ca: only, serials }, ports) {
    const crls = await forEachCa<CrlAnswer>(only, ports, (ca) => crlOf(ca, serials, ports));
    return { cluster: ports.cluster, crls };
  },
  logged({ crls }) {
    const states = crls.map((each) => [each.name, each.ok ? stateOf(each) : each.why] as const);
    return { failed: !crls.every((each) => each.ok || isExpected(each)), cas: Object.fromEntries(states) };
  },
};

async function crlOf(ca: CaConfiguration, serials: readonly string[], ports: CaPorts): Promise<CrlAnswer> {
  const { name } = ca;
  const loaded = await loadAuthority(ca, ports.key(name), ports.store);
  if (!loaded.ok) return { ok: false, name, ...loaded.problem };
  const { revocations, crls, origin } = ports;
  const now = () => origin().now;
  const { issued, crl: made } = await renewCrl(loaded.value, serials, { revocations, crls, now });
  const listed = new Set(made.revoked.map(({ serial }) => serial));
  return {
    ok: true,
    name,
    keyId: loaded.value.signer.keyId,
    issued,
    signed: made.der !== undefined,
    number: made.number,
    nextUpdate: made.nextUpdate,
    entries: made.revoked.length,
    serials: serials.filter((serial) => listed.has(serial)),
  };
}

function isSerial(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{2,40}$/.test(value);
}

function stateOf({ issued, signed, number, entries }: CrlAnswer & { readonly ok: true }): string {
  return `${issued ? 'issued' : 'there'}: ${signed ? 'CRL' : 'list without a CRL'} ${number}, ${entries} entries`;
}
