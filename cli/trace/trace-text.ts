/** A trace as text and as JSON. Names, messages and lines of logs are untrusted text that must not control a terminal. */
import { pemBlocks } from '../../core/encoding/pem.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { printable, printableUpTo } from '../../core/outcome/printable-text.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import { readCertificate } from '../../core/x509/read-certificate.ts';
import type { Trace } from './collect.ts';
import type { Unread } from './reader.ts';
import type { Detail, Moment } from './moments.ts';
import { table } from '../output/output.ts';

export interface ShownTrace {
  readonly uid: string;
  readonly name?: string;
  readonly signerName?: string;
  readonly requester?: string;
  readonly cluster?: string;
  readonly ledger?: ShownRecord;
  readonly verdict?: { readonly decision: string; readonly mode: string; readonly identity?: string };
  readonly certificate?: ShownCertificate;
  readonly timeline: readonly ShownMoment[];
  readonly unread: readonly Unread[];
}

interface ShownRecord extends Pick<IssuingRecord, 'state' | 'attempt' | 'serial' | 'caKeyId'> {
  readonly openedAt: string;
  readonly identity?: string;
  readonly kmsRequestId?: string;
  readonly lambdaRequestId?: string;
}

interface ShownCertificate {
  readonly serial: string;
  readonly fingerprintSha256: string;
  readonly subject: string;
  readonly notBefore: string;
  readonly notAfter: string;
  /** Whether the request in the cluster holds this certificate; absent if the request was not read. */
  readonly inStatus?: 'this' | 'another' | 'none';
}

type ShownMoment = Omit<Moment, 'at'> & { readonly at: string };

/** The value for JSON and YAML. */
export function shownTrace(
  { uid, object, record, verdict, moments }: Trace,
  unread: readonly Unread[],
  cluster: string | undefined,
): ShownTrace {
  const { metadata, spec } = object ?? {};
  const { name } = objectOf(metadata);
  const { signerName, username } = objectOf(spec);
  const certificate = shownCertificate(object, record);
  return {
    uid,
    ...texts({ name, signerName: signerName ?? verdict?.signerName, requester: username, cluster }),
    ...(record === undefined ? {} : { ledger: shownRecord(record) }),
    ...(verdict === undefined
      ? {}
      : { verdict: { decision: verdict.decision, mode: verdict.mode, ...texts({ identity: verdict.identity }) } }),
    ...(certificate === undefined ? {} : { certificate }),
    timeline: moments.map(({ at, ...moment }) => ({ at: new Date(at).toISOString(), ...moment })),
    unread,
  };
}

function shownRecord(record: IssuingRecord): ShownRecord {
  const { state, attempt, serial, caKeyId, openedAt, identity, kmsRequestId, lambdaRequestId } = record;
  const more = texts({ identity, kmsRequestId, lambdaRequestId });
  return { state, attempt, serial, caKeyId, openedAt: new Date(openedAt).toISOString(), ...more };
}

function shownCertificate(
  object: JsonObject | undefined,
  record: IssuingRecord | undefined,
): ShownCertificate | undefined {
  const { certificate: stored } = objectOf(object?.['status']);
  const [leaf] =
    typeof stored === 'string' ? pemBlocks(Buffer.from(stored, 'base64').toString('latin1'), 'CERTIFICATE') : [];
  const inStatus = leaf === undefined ? undefined : Buffer.from(leaf.replaceAll(/-----[^-]*-----|\s/g, ''), 'base64');
  const der = record?.certificate ?? inStatus;
  if (der === undefined) return undefined;
  // The status of a request may hold any bytes: another client may have written it.
  const read = readCertificate(der);
  if (!read.ok) return undefined;
  const { serial, fingerprintSha256, subject, notBefore, notAfter } = read.value;
  const same = inStatus === undefined ? 'none' : inStatus.equals(der) ? 'this' : 'another';
  return {
    serial,
    fingerprintSha256,
    subject,
    notBefore: new Date(notBefore).toISOString(),
    notAfter: new Date(notAfter).toISOString(),
    ...(object === undefined ? {} : { inStatus: same }),
  };
}

export function traceText(shown: ShownTrace): string {
  const { uid, name, signerName, requester, cluster, ledger, verdict, certificate, timeline, unread } = shown;
  const words = [
    ['request', `${name === undefined ? '' : `${printable(name)}, `}UID ${printable(uid)}`],
    ['signer', signerName && printable(signerName)],
    ['requester', requester && printable(requester)],
    ['cluster', cluster && printable(cluster)],
    ['verdict', verdict && `${verdict.decision} (${verdict.mode})`],
    ['machine', long(verdict?.identity ?? ledger?.identity)],
    ['ledger', ledger === undefined ? 'no record was seen' : `${ledger.state}, attempts: ${ledger.attempt}`],
    ['serial', certificate?.serial ?? ledger?.serial],
    ['SHA-256', certificate?.fingerprintSha256],
    ['valid', certificate && `${certificate.notBefore} to ${certificate.notAfter}`],
    ['in the status', certificate?.inStatus && statusTexts[certificate.inStatus]],
    ['CA key', long(ledger?.caKeyId)],
    ['KMS request', long(ledger?.kmsRequestId)],
    ['Lambda request', long(ledger?.lambdaRequestId)],
  ] as const;
  const head = table(words.flatMap(([title, word]) => (word === undefined || word === '' ? [] : [[title, word]])));
  const rows = timeline.map(({ at, source, what, details }) => [
    at.replace('.000Z', 'Z'),
    source,
    // The name stands above.
    [
      printable(what),
      ...Object.entries(details)
        .filter(([key]) => key !== 'name')
        .map(detailText),
    ].join('  '),
  ]);
  return [
    head,
    ...(rows.length === 0 ? [] : [`\n${table([['WHEN', 'WHERE', 'WHAT'], ...rows])}`]),
    ...(unread.length === 0 ? [] : [`\n${unreadText(unread)}`]),
  ].join('');
}

/** Empty if everything was read. */
export function unreadText(unread: readonly Unread[]): string {
  const lines = unread.map(({ what, why, hint }) => {
    const more = hint === undefined ? '' : `    ${printableUpTo(200, hint)}\n`;
    return `  ${printableUpTo(200, what)}: ${printableUpTo(400, why)}\n${more}`;
  });
  return lines.length === 0 ? '' : `Not read:\n${lines.join('')}`;
}

const statusTexts = {
  this: 'yes, this certificate',
  another: 'ANOTHER certificate: another signer wrote it',
  none: 'no certificate',
} as const;

function detailText([name, detail]: readonly [string, Detail]): string {
  const text = typeof detail === 'object' ? detail.join(',') : String(detail);
  return `${printable(name)}=${printableUpTo(200, text)}`;
}

function long(text: string | undefined): string | undefined {
  return text === undefined ? undefined : printableUpTo(300, text);
}

/** Without the absent ones. */
function texts<Name extends string>(fields: Readonly<Record<Name, unknown>>): { readonly [N in Name]?: string } {
  const known = Object.entries(fields).filter(([, value]) => typeof value === 'string');
  return Object.fromEntries(known) as { [N in Name]?: string };
}
