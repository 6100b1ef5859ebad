/**
 * PEM that readers disagree about: RFC 7468 has a strict, a standard and a lax grammar, and every library its own.
 * The API server takes the first block it finds and does not look further (measured), so all of this can arrive.
 */
import { makeRequest, pemBlock } from '../../harness/x509/requests.ts';
import { maxRequestBytes } from '../../../core/x509/certificate-request.ts';
import { requestCase, type Ending, type HostileCase } from './case.ts';

const label = 'CERTIFICATE REQUEST';
const begin = `-----BEGIN ${label}-----`;
const end = `-----END ${label}-----`;
const provider = (content = 'insecure/v1') =>
  pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from(content));
const data = (content = '{"v":1}') => pemBlock('KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from(content));

const valid = makeRequest({ subject: { CN: 'hostile' } });
const other = makeRequest({ subject: { CN: 'other' } });
/** Its length is no multiple of 3, so that there is padding to be played with. Signatures differ in length. */
const padded = Array.from({ length: 50 }, (_, i) => makeRequest({ subject: { CN: 'h'.repeat(i + 1) } })).find(
  ({ der }) => der.length % 3 !== 0,
)!;
const base64 = valid.der.toString('base64');
const lines = valid.pem.trimEnd().split('\n');
const body = lines.slice(1, -1);
const wrap = (content: string) => `${begin}\n${content}\n${end}\n`;
const latin1 = (text: string) => Buffer.from(text, 'latin1');

const malformed = (id: string, text: () => Uint8Array | string): HostileCase =>
  requestCase(`pem/${id}`, 'RequestMalformed', text);
const fine = (id: string, text: () => Uint8Array | string): HostileCase => requestCase(`pem/${id}`, 'issued', text);
const either = (id: string, expected: readonly Ending[], text: () => Uint8Array | string): HostileCase =>
  requestCase(`pem/${id}`, expected, text);

const controls: readonly HostileCase[] = [
  fine('control/lf', () => valid.pem),
  fine('control/crlf', () => valid.pem.replaceAll('\n', '\r\n')),
  fine('control/no-last-line-end', () => valid.pem.trimEnd()),
  fine('control/one-long-line', () => wrap(base64)),
  fine('control/evidence', () => valid.pem + provider() + data()),
];

const nothing: readonly HostileCase[] = [
  either('empty/no-bytes', ['invalid'], () => ''),
  malformed('empty/line-end', () => '\n'),
  malformed('empty/nul', () => Buffer.alloc(64)),
  malformed('empty/60000-line-ends', () => '\n'.repeat(60_000)),
  malformed('empty/body', () => `${begin}\n${end}\n`),
  malformed('empty/body-blank-line', () => wrap('')),
  malformed('empty/only-padding', () => wrap('====')),
];

const around: readonly HostileCase[] = [
  malformed('text/before', () => `Certificate Request:\n${valid.pem}`),
  malformed('text/after', () => `${valid.pem}the end\n`),
  malformed('text/space-after', () => `${valid.pem} `),
  malformed('text/nul-after', () => `${valid.pem}\0`),
  malformed('text/dashes-before', () => `-----\n${valid.pem}`),
  malformed('text/bom', () => `\ufeff${valid.pem}`),
  malformed('text/nbsp', () => latin1(`\u00a0${valid.pem}`)),
  malformed('text/utf-16le', () => Buffer.from(valid.pem, 'utf16le')),
  malformed('text/utf-16be', () => Buffer.from(valid.pem, 'utf16le').swap16()),
  malformed('text/escape-sequence', () => `\u001b[2J${valid.pem}`),
  malformed('text/between-blocks', () => `${valid.pem}and\n${provider()}`),
  malformed('text/der-not-pem', () => valid.der),
  malformed('text/hex', () => valid.der.toString('hex')),
  malformed('text/bare-base64', () => base64),
  malformed('text/json', () => JSON.stringify({ request: valid.pem })),
  malformed('text/base64-of-pem', () => Buffer.from(valid.pem).toString('base64')),
  malformed('text/pem-of-pem', () => pemBlock(label, Buffer.from(valid.pem))),
  malformed('text/gzip-magic', () => Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0])),
];

/** Each in place of the line that begins or ends the block. */
const boundaries: readonly HostileCase[] = [
  ['leading-space', ` ${begin}`, end],
  ['trailing-space', `${begin} `, end],
  ['trailing-tab', `${begin}\t`, end],
  ['trailing-vertical-tab', `${begin}\v`, end],
  ['trailing-nul', `${begin}\0`, end],
  ['four-dashes', '----BEGIN CERTIFICATE REQUEST----', '----END CERTIFICATE REQUEST----'],
  ['six-dashes', '------BEGIN CERTIFICATE REQUEST------', '------END CERTIFICATE REQUEST------'],
  ['ssh2', '---- BEGIN CERTIFICATE REQUEST ----', '---- END CERTIFICATE REQUEST ----'],
  ['en-dashes', begin.replaceAll('-', '\u2013'), end.replaceAll('-', '\u2013')],
  ['lower-case', begin.toLowerCase(), end.toLowerCase()],
  ['lower-case-label', '-----BEGIN certificate request-----', '-----END certificate request-----'],
  ['two-spaces', '-----BEGIN  CERTIFICATE REQUEST-----', '-----END  CERTIFICATE REQUEST-----'],
  ['space-in-label', '-----BEGIN CERTIFICATE  REQUEST-----', '-----END CERTIFICATE  REQUEST-----'],
  ['space-after-label', '-----BEGIN CERTIFICATE REQUEST -----', '-----END CERTIFICATE REQUEST -----'],
  ['no-label', '-----BEGIN -----', '-----END -----'],
  ['no-space', '-----BEGIN-----', '-----END-----'],
  ['other-end', begin, '-----END CERTIFICATE-----'],
  ['other-begin', '-----BEGIN CERTIFICATE-----', end],
  ['old-label', '-----BEGIN NEW CERTIFICATE REQUEST-----', '-----END NEW CERTIFICATE REQUEST-----'],
  ['certificate', '-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----'],
  ['private-key', '-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----'],
  ['control-in-label', '-----BEGIN CERTIFICATE\u0007REQUEST-----', '-----END CERTIFICATE\u0007REQUEST-----'],
  ['nul-in-label', '-----BEGIN CERTIFICATE REQUEST\0-----', '-----END CERTIFICATE REQUEST\0-----'],
  ['cyrillic-label', begin.replace('C', '\u0421'), end.replace('C', '\u0421')],
  ['begin-for-end', begin, begin],
  ['end-for-begin', end, end],
  ['no-end', begin, ''],
  ['no-begin', '', end],
  ['cut-end', begin, '-----END CERTIFICATE REQUEST'],
  ['begin-twice', `${begin}\n${begin}`, end],
].map(([id = '', first = '', last = '']) => malformed(`boundary/${id}`, () => [first, ...body, last, ''].join('\n')));

const boundariesTwice: readonly HostileCase[] = [
  either('boundary/end-twice', ['RequestMalformed'], () => `${valid.pem}${end}\n`),
  malformed('boundary/one-line', () => `${begin}${base64}${end}`),
  malformed('boundary/begin-and-base64', () => `${begin}${body.join('\n')}\n${end}\n`),
  malformed('boundary/base64-and-end', () => `${begin}\n${base64}${end}\n`),
  malformed('boundary/end-and-begin-on-one-line', () => valid.pem.trimEnd() + other.pem),
  malformed('boundary/30-kb-label', () => valid.pem.replaceAll(label, 'A'.repeat(30_000))),
  malformed('boundary/3000-begins', () => `${begin}\n`.repeat(3_000) + valid.pem),
  malformed('boundary/dashes', () => '-'.repeat(100_000)),
];

const blocks: readonly HostileCase[] = [
  malformed('blocks/second-same', () => valid.pem + valid.pem),
  malformed('blocks/second-other', () => valid.pem + other.pem),
  malformed('blocks/second-after-evidence', () => valid.pem + provider() + data() + other.pem),
  malformed('blocks/second-broken', () => `${valid.pem}${begin}\nAAAA\n`),
  malformed('blocks/certificate-after', () => valid.pem + pemBlock('CERTIFICATE', valid.der)),
  malformed('blocks/private-key-after', () => valid.pem + pemBlock('PRIVATE KEY', Buffer.alloc(48))),
  malformed('blocks/unknown-after', () => valid.pem + pemBlock('KUBELET AUTHENTICATOR', Buffer.alloc(3))),
  malformed('blocks/provider-first', () => provider() + valid.pem),
  malformed('blocks/provider-alone', () => provider()),
  malformed('blocks/data-before-provider', () => valid.pem + data() + provider()),
  malformed('blocks/provider-twice', () => valid.pem + provider() + provider('aws/v1')),
  malformed('blocks/data-twice', () => valid.pem + provider() + data() + data('{"v":2}')),
  malformed('blocks/2000-evidence', () => valid.pem + provider().repeat(900)),
  malformed('blocks/nested', () => `${begin}\n${body[0]}\n${valid.pem}${body.slice(1).join('\n')}\n${end}\n`),
  // Evidence is the attest function's to judge; to signing it means nothing, whatever it holds.
  either(
    'blocks/evidence-is-garbage',
    ['issued', 'RequestMalformed'],
    () => valid.pem + pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.alloc(300, 0xff)),
  ),
  either('blocks/evidence-70-kb', ['RequestTooLarge'], () => valid.pem + provider() + data('x'.repeat(70_000))),
];

const headers: readonly HostileCase[] = [
  malformed('headers/proc-type', () => wrap(`Proc-Type: 4,ENCRYPTED\nDEK-Info: DES-CBC,00\n\n${base64}`)),
  malformed('headers/without-blank-line', () => wrap(`X: y\n${base64}`)),
  malformed('headers/continued', () => wrap(`X: y\n z\n\n${base64}`)),
  malformed('headers/empty-name', () => wrap(`: y\n\n${base64}`)),
  malformed('headers/behind', () => wrap(`${base64}\nX: y`)),
  malformed('headers/colon-only', () => wrap(`:\n${base64}`)),
  malformed('headers/5000', () => wrap(`${'a: b\n'.repeat(5_000)}\n${base64}`)),
  malformed('headers/60-kb', () => wrap(`X: ${'y'.repeat(60_000)}\n\n${base64}`)),
  malformed(
    'headers/pgp',
    () => `-----BEGIN PGP MESSAGE-----\nVersion: 1\n\n${base64}\n=AAAA\n-----END PGP MESSAGE-----\n`,
  ),
];

const paddedText = padded.der.toString('base64');
const unpadded = paddedText.replaceAll('=', '');
/** The last character with its unused bits set. */
const spare = (() => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const last = alphabet.indexOf(unpadded.at(-1) ?? 'A');
  return `${unpadded.slice(0, -1)}${alphabet[last | 1]}${'='.repeat(paddedText.length - unpadded.length)}`;
})();

const base64Forms: readonly HostileCase[] = [
  fine('base64/padded', () => wrap(paddedText)),
  malformed('base64/no-padding', () => wrap(unpadded)),
  malformed('base64/too-much-padding', () => wrap(`${base64}====`)),
  malformed('base64/padding-in-the-middle', () => wrap(`${paddedText}${base64}`)),
  malformed('base64/padding-on-its-own-line-first', () => wrap(`=\n${base64}`)),
  malformed('base64/spare-bits', () => wrap(spare)),
  malformed('base64/url-alphabet', () =>
    wrap(`${makeRequest({ subject: { CN: '\u07ff\u07ff\u07ff~~~???' } }).der.toString('base64url')}-_`),
  ),
  malformed('base64/space-inside', () => wrap(base64.replace(/^(.{10})/, '$1 '))),
  malformed('base64/tab-inside', () => wrap(base64.replace(/^(.{10})/, '$1\t'))),
  malformed('base64/space-at-line-end', () => wrap(`${base64} `)),
  malformed('base64/nul-inside', () => wrap(base64.replace(/^(.{10})/, '$1\0'))),
  malformed('base64/blank-line-inside', () => wrap(`${base64.slice(0, 64)}\n\n${base64.slice(64)}`)),
  malformed('base64/blank-line-first', () => wrap(`\n${base64}`)),
  malformed('base64/blank-line-last', () => wrap(`${base64}\n`)),
  malformed('base64/high-byte', () => latin1(wrap(base64.replace(/^(.{10})/, '$1\u00ff')))),
  malformed('base64/full-width', () => wrap(base64.replace('M', '\uff2d'))),
  malformed('base64/percent', () => wrap(encodeURIComponent(`${base64}+/`))),
  malformed('base64/comment', () => wrap(`# a comment\n${base64}`)),
  malformed('base64/quoted-printable', () => wrap(`${base64.slice(0, 64)}=\n${base64.slice(64)}`)),
  malformed('base64/cut-by-one', () => wrap(base64.slice(0, -1))),
  malformed('base64/cut-by-four', () => wrap(base64.slice(0, -4))),
  malformed('base64/crc', () => wrap(`${base64}\n=twTO`)),
  either('base64/one-character-a-line', ['issued', 'RequestMalformed'], () =>
    wrap(base64.replaceAll(/.(?=.)/g, '$&\n')),
  ),
  malformed('base64/cr-only', () => valid.pem.replaceAll('\n', '\r')),
  malformed('base64/lf-cr', () => valid.pem.replaceAll('\n', '\n\r')),
  malformed('base64/cr-cr-lf', () => valid.pem.replaceAll('\n', '\r\r\n')),
  malformed('base64/u2028', () => valid.pem.replaceAll('\n', '\u2028')),
  malformed('base64/nel', () => latin1(valid.pem.replaceAll('\n', '\u0085'))),
  either('base64/mixed-line-ends', ['issued', 'RequestMalformed'], () => valid.pem.replace('\n', '\r\n')),
];

const filled = (size: number) => valid.pem + '\n'.repeat(size - valid.pem.length);

const sizes: readonly HostileCase[] = [
  // Blank lines around blocks are neither text nor headers; at the cap the request may still be read.
  either('size/at-the-cap', ['issued', 'RequestMalformed'], () => filled(maxRequestBytes)),
  either('size/one-above', ['RequestTooLarge'], () => filled(maxRequestBytes + 1)),
  either('size/two-above', ['RequestTooLarge'], () => filled(maxRequestBytes + 2)),
  either('size/1-mb', ['RequestTooLarge'], () => filled(1_000_000)),
  malformed('size/100-kb-of-base64', () => wrap('A'.repeat(100_000))),
  malformed('size/100-kb-of-lines', () => wrap('A\n'.repeat(50_000))),
  malformed('size/25000-tiny-lines', () => wrap('AAAA\n'.repeat(25_000).trimEnd())),
];

export const pemCases: readonly HostileCase[] = [
  ...controls,
  ...nothing,
  ...around,
  ...boundaries,
  ...boundariesTwice,
  ...blocks,
  ...headers,
  ...base64Forms,
  ...sizes,
];
