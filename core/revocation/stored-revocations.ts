/** What the stores keep of revocations and CRLs, checked. Each function throws for a record that this program did not write. */
import { integer, listOf, object, oneOf, optional, text } from '../encoding/stored-fields.ts';
import type { RevocationReason } from '../ports/revocations.ts';
import type { CrlHead, ListedRevocation, Revocation, StoredCrl } from '../ports/revocations.ts';
import { reasonCodes } from '../ports/revocations.ts';

const reason = oneOf(...(Object.keys(reasonCodes) as RevocationReason[]));
const listed = { serial: text, fingerprint: text, notAfter: integer, reason, at: integer };

export const revocationFrom = object<Revocation>({
  ...listed,
  caKeyId: text,
  by: text,
  note: text,
  matchedBy: text,
  auditId: text,
  uid: text,
  identity: optional(text),
  nodeName: optional(text),
});

export const crlHeadFrom = object<CrlHead>({
  caKeyId: text,
  number: integer,
  thisUpdate: integer,
  nextUpdate: integer,
  kmsRequestId: optional(text),
});

type CrlBody = Pick<StoredCrl, 'der' | 'revoked'>;

/** Both fields as one text. */
export function encodeCrlBody({ der, revoked }: CrlBody): string {
  return JSON.stringify({ der: der && Buffer.from(der).toString('base64'), revoked });
}

const crlBody = object<{ readonly der: string | undefined; readonly revoked: readonly ListedRevocation[] }>({
  der: optional(text),
  revoked: listOf(object<ListedRevocation>(listed)),
});

export function decodeCrlBody(json: string): CrlBody {
  const { der, revoked } = crlBody(JSON.parse(json));
  return { revoked, ...(der === undefined ? {} : { der: new Uint8Array(Buffer.from(der, 'base64')) }) };
}
