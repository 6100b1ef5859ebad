/** Certificates as text for people. Names in certificates are untrusted text. */
import type { CertificateEntry } from '../../core/inventory/certificate-entry.ts';
import type { Verdict } from '../../core/ports/attestation-store.ts';
import type { Revocation } from '../../core/ports/revocations.ts';
import { atMost, printable } from '../../core/outcome/printable-text.ts';
import { table } from '../output/output.ts';
import { fullText, instantText } from '../output/tofu-text.ts';

const none = '-';
const text = (value: string | undefined): string => (value === undefined || value === '' ? none : printable(value));

export function entriesTable(entries: readonly CertificateEntry[], wide: boolean): string {
  const head = ['SERIAL', 'SUBJECT', 'SIGNER', 'REQUESTER', 'VERDICT', 'EXPIRES'];
  return table([
    wide ? [...head, 'STATE', 'BEGUN', 'SUBJECT ALTERNATIVE NAMES', 'IDENTITY', 'UID', 'CA KEY'] : head,
    ...entries.map((entry) => {
      const { serial, subject, signerName, requester, notAfter, state, openedAt, identity, uid, caKeyId } = entry;
      const row = [serial, text(subject), text(signerName), text(requester), verdictText(entry), instantText(notAfter)];
      if (!wide) return row;
      const names = atMost(namesOf(entry), printable).join(' ');
      const machine = identity === undefined ? none : fullText(identity);
      return [
        ...row,
        state,
        instantText(openedAt),
        names === '' ? none : names,
        machine,
        fullText(uid),
        fullText(caKeyId),
      ];
    }),
  ]);
}

function verdictText({ identity }: CertificateEntry): string {
  return identity === undefined ? none : 'approve';
}

export function namesOf({ sans }: CertificateEntry): readonly string[] {
  return [...sans.dns, ...sans.ip, ...sans.email, ...sans.uri];
}

function revokedText({ at, reason, by, note, matchedBy, auditId }: Revocation): string {
  const why = `${reason}, by ${fullText(by)}: ${fullText(note)}`;
  return `${instantText(at)}, ${why} (by ${fullText(matchedBy)}, audit item ${auditId})`;
}

/** `verdict`: attest's, while it is stored. */
export function entryText(
  entry: CertificateEntry,
  verdict: Verdict | undefined,
  revocation: Revocation | undefined,
): string {
  const { serial, uid, state, subject, signerName, requester, groups, usages, identity, caKeyId } = entry;
  const { notBefore, notAfter, openedAt, attempt, fingerprintSha256, publicKeySha256 } = entry;
  const list = (values: readonly string[] | undefined): string =>
    values === undefined ? 'not kept' : values.length === 0 ? none : values.map(fullText).join(', ');
  const stored =
    verdict === undefined ? '' : ` (${verdict.decision} at ${instantText(verdict.decidedAt)}; stored for 25 h)`;
  const rows: readonly (readonly [name: string, value: string | undefined])[] = [
    ['serial number', serial],
    ['state', state],
    ['revoked', revocation && revokedText(revocation)],
    ['subject', fullText(subject)],
    ['alternative names', list(namesOf(entry))],
    ['signer', signerName === undefined ? 'not kept' : fullText(signerName)],
    ['requester', requester === undefined ? 'not kept' : fullText(requester)],
    ['groups', list(groups)],
    ['usages', list(usages)],
    ['machine', identity === undefined ? none : fullText(identity)],
    ['verdict', `${verdictText(entry)}${stored}`],
    ['valid from', instantText(notBefore)],
    ['valid to', instantText(notAfter)],
    ['begun', `${instantText(openedAt)}, ${attempt} ${attempt === 1 ? 'attempt' : 'attempts'}`],
    ['request UID', fullText(uid)],
    ['CA key', fullText(caKeyId)],
    ['SHA-256', fingerprintSha256],
    ['SHA-256 of its key', publicKeySha256],
    ['KMS request', entry.kmsRequestId],
    ['invocation', entry.lambdaRequestId],
  ];
  return table(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
