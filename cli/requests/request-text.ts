/** Requests as text for people. */
import { atMost, printable } from '../../core/outcome/printable-text.ts';
import { table } from '../output/output.ts';
import { fullText } from '../output/tofu-text.ts';
import type { AskedFor, RequestView } from './request-view.ts';

const none = '-';
const text = (value: string | undefined): string => (value === undefined || value === '' ? none : printable(value));
const list = (values: readonly string[]): string => (values.length === 0 ? none : atMost(values, printable).join(' '));

/** Milliseconds since 1970. */
export function requestsTable(requests: readonly RequestView[], wide: boolean, now: number): string {
  const head = ['NAME', 'AGE', 'SIGNER', 'REQUESTER', 'STATE', 'SUBJECT', 'NAMES'];
  const rows = requests.map((request) => {
    const { name, createdAt, signerName, requester, state, machine, reason, asked } = request;
    const [subject, names, fingerprint] =
      'problem' in asked
        ? [`cannot be read: ${text(asked.problem)}`, none, none]
        : [text(asked.subject), list(namesOf(asked)), asked.keyFingerprint];
    const row = [fullText(name), ageText(createdAt, now), text(signerName), text(requester), state, subject, names];
    return wide ? [...row, text(reason), text(machine), fingerprint] : row;
  });
  return table([wide ? [...head, 'REASON', 'MACHINE', 'KEY FINGERPRINT'] : head, ...rows]);
}

export function requestText(request: RequestView, now: number): string {
  const { name, uid, createdAt, signerName, requester, groups, usages, expirationSeconds, state, asked } = request;
  return table([
    ['name', fullText(name)],
    ['uid', text(uid)],
    ['created', `${text(createdAt)} (${ageText(createdAt, now)} ago)`],
    ['signer', text(signerName)],
    ['requester', text(requester)],
    ['groups', list(groups)],
    ['usages', list(usages.map((usage) => `${usage},`)).replace(/,$/, '')],
    ['lifetime', expirationSeconds === undefined ? 'as the signer has it' : `${expirationSeconds} s, at most`],
    ['state', state],
    ...(request.reason === undefined ? [] : [['reason', text(request.reason)]]),
    ...(request.message === undefined ? [] : [['message', fullText(request.message)]]),
    ...(request.machine === undefined ? [] : [['machine', text(request.machine)]]),
    ...('problem' in asked ? [['request', `cannot be read: ${text(asked.problem)}`]] : askedRows(asked)),
  ]);
}

function askedRows({ subject, dnsNames, addresses, emailAddresses, uris, key, keyFingerprint }: AskedFor): string[][] {
  return [
    ['subject', text(subject)],
    ['DNS names', list(dnsNames)],
    ['addresses', list(addresses)],
    ...(emailAddresses.length === 0 ? [] : [['email addresses', list(emailAddresses)]]),
    ...(uris.length === 0 ? [] : [['URIs', list(uris)]]),
    ['key', `${key}, SHA-256 ${keyFingerprint}`],
  ];
}

function namesOf({ dnsNames, addresses, emailAddresses, uris }: AskedFor): readonly string[] {
  return [...dnsNames, ...addresses, ...emailAddresses, ...uris];
}

/** As kubectl shows it: the largest unit. */
function ageText(createdAt: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(createdAt)) / 1_000);
  if (Number.isNaN(seconds)) return none;
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'm'],
  ] as const;
  const [size, unit] = units.find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.max(0, Math.floor(seconds / size))}${unit}`;
}
