/** The fields of the object: values of the wrong type, size, number and alphabet in every one of them. */
import type { Ending, HostileCase } from './case.ts';
import { bodyCase, object, replaced, request, text } from './object.ts';

const base64 = request.toString('base64');

const everyType: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['true', true],
  ['zero', 0],
  ['number', 1.5],
  ['string', 'x'],
  ['empty-string', ''],
  ['array', []],
  ['array-of-null', [null]],
  ['array-of-arrays', [[], [[]]]],
  ['object', {}],
  ['object-with-length', { length: 1, 0: 'client auth' }],
  ['absent', undefined],
];
/** Fields that are read, and what they may end in when of the wrong type. A few wrong ones are right. */
const fields: Readonly<Record<string, readonly Ending[]>> = {
  apiVersion: ['invalid'],
  kind: ['invalid'],
  metadata: ['invalid'],
  'metadata.name': ['invalid', 'issued'],
  'metadata.uid': ['invalid', 'issued', 'UidReused'],
  spec: ['invalid'],
  'spec.request': ['invalid', 'RequestMalformed'],
  'spec.signerName': ['invalid', 'ignored'],
  'spec.usages': ['invalid', 'SignerValidationFailure'],
  'spec.expirationSeconds': ['invalid', 'issued'],
  'spec.username': ['invalid', 'issued'],
  'spec.groups': ['invalid', 'issued'],
  'spec.extra': ['invalid', 'issued'],
  status: ['invalid', 'ignored'],
  'status.conditions': ['invalid', 'ignored'],
  'status.certificate': ['invalid', 'issued', 'ignored'],
};
const types: readonly HostileCase[] = Object.entries(fields).flatMap(([field, expected]) =>
  everyType.map(([id, value]) => bodyCase(`type/${field}/${id}`, expected, () => replaced(field, value))),
);
/** Fields that the function does not read, and returns as they came. */
const unread = ['metadata.annotations', 'spec.uid', 'metadata.resourceVersion', 'status.unknown'];
const unreadTypes: readonly HostileCase[] = unread.flatMap((field) =>
  everyType.map(([id, value]) => bodyCase(`unread/${field}/${id}`, 'issued', () => replaced(field, value))),
);

const seconds = (value: string) => () => text().replace('3600', value);
const numbers: readonly HostileCase[] = (
  [
    ['-0', ['issued', 'invalid']],
    ['0', ['issued', 'invalid']],
    ['-1', ['issued', 'invalid']],
    ['1', ['issued', 'invalid']],
    ['599', ['issued', 'invalid']],
    ['1.5', ['invalid']],
    ['3600.0', ['issued']],
    ['3.6e3', ['issued']],
    ['1e-400', ['issued', 'invalid']],
    ['1e999', ['invalid']],
    ['-1e999', ['invalid']],
    ['2147483647', ['issued']],
    ['2147483648', ['invalid']],
    ['-2147483648', ['issued', 'invalid']],
    ['-2147483649', ['invalid']],
    ['4294968296', ['invalid']],
    ['9007199254740993', ['invalid']],
    ['18446744073709555216', ['invalid']],
    [`1${'0'.repeat(1_000)}`, ['invalid']],
  ] as const
).map(([value, expected]) =>
  bodyCase(`expiration-seconds/${value.length > 30 ? 'of-1001-digits' : value}`, expected, seconds(value)),
);

const uid = (value: unknown) => () => replaced('metadata.uid', value);
const identifiers: readonly HostileCase[] = [
  ...(
    [
      ['hash', 'a#b'],
      ['slash', 'a/b'],
      ['up', '../a'],
      ['percent', 'a%23b'],
      ['space', 'a b'],
      ['nul', 'a\0b'],
      ['line-end', 'a\nb'],
      ['line-end-behind', 'a\n'],
      ['quote', "a';DROP TABLE records;--"],
      ['unicode', 'ab\u00e4c'],
      ['full-width', '\uff41'],
      ['bidi', 'a\u202eb'],
      ['lone-surrogate', 'a\ud800'],
      ['10-kb', 'a'.repeat(10_240)],
      ['254', 'a'.repeat(254)],
      ['1-mb', 'a'.repeat(1_000_000)],
      ['dollar', '$ne'],
      ['dash', '-'],
    ] as const
  ).map(([id, value]) => bodyCase(`uid/${id}`, 'invalid', uid(value))),
  bodyCase('uid/253', 'issued', uid('a'.repeat(253))),
  bodyCase('uid/proto', ['issued', 'invalid'], uid('__proto__')),
  bodyCase('uid/constructor', 'issued', uid('constructor')),
  bodyCase('uid/name-line-end', 'issued', () => replaced('metadata.name', 'a\nb')),
];

const encodedRequest = (value: string) => () => replaced('spec.request', value);
const base64Forms: readonly HostileCase[] = (
  [
    ['url-alphabet', Buffer.from('\u00ff\u00fb'.repeat(30), 'latin1').toString('base64url')],
    ['line-ends', base64.replaceAll(/(.{76})/g, '$1\n')],
    ['blank-before', ` ${base64}`],
    ['blank-behind', `${base64} `],
    ['no-padding', Buffer.from('ab').toString('base64').replaceAll('=', '')],
    ['spare-bits', 'QR=='],
    ['padding-alone', '===='],
    ['padding-inside', `QQ==${base64}`],
    ['three-paddings', 'Q==='],
    ['high', `${base64.slice(0, -4)}\u00e4\u00e4\u00e4\u00e4`],
    ['nul', `${base64}\0\0\0\0`],
    ['pem-not-encoded', request.toString('latin1')],
    ['data-url', `data:application/x-pem-file;base64,${base64}`],
    ['hex', request.toString('hex').slice(0, -1)],
  ] as const
).map(([id, value]) => bodyCase(`base64/${id}`, 'invalid', encodedRequest(value)));
const base64More: readonly HostileCase[] = [
  bodyCase('base64/twice', 'RequestMalformed', encodedRequest(Buffer.from(base64).toString('base64'))),
  bodyCase('base64/1-mb', 'RequestTooLarge', encodedRequest('A'.repeat(1_000_000))),
  bodyCase('base64/1-mb-of-nonsense', ['RequestTooLarge', 'invalid'], encodedRequest('!'.repeat(1_000_000))),
];

const many = (count: number, of: (i: number) => unknown) => Array.from({ length: count }, (_, i) => of(i));
const approved = { type: 'Approved', status: 'True' };
const values: readonly HostileCase[] = [
  bodyCase('value/10000-groups', 'RequestTooLarge', () =>
    replaced(
      'spec.groups',
      many(10_000, (i) => `g${i}`),
    ),
  ),
  bodyCase('value/100000-groups', 'RequestTooLarge', () =>
    replaced(
      'spec.groups',
      many(100_000, (i) => `g${i}`),
    ),
  ),
  bodyCase('value/group-of-1-mb', 'issued', () => replaced('spec.groups', ['g'.repeat(1_000_000)])),
  bodyCase('value/username-of-1-mb', 'issued', () => replaced('spec.username', 'u'.repeat(1_000_000))),
  bodyCase('value/username-lone-surrogate', ['issued', 'invalid'], () => replaced('spec.username', '\ud800')),
  bodyCase('value/username-escape-sequence', 'issued', () => replaced('spec.username', '\u001b[2J\r\n\u202e')),
  bodyCase('value/10000-usages', 'RequestTooLarge', () =>
    replaced(
      'spec.usages',
      many(10_000, (i) => `u${i}`),
    ),
  ),
  bodyCase('value/10000-times-one-usage', 'RequestTooLarge', () =>
    replaced(
      'spec.usages',
      many(10_000, () => 'client auth'),
    ),
  ),
  bodyCase('value/usage-of-1-mb', 'SignerValidationFailure', () => replaced('spec.usages', ['u'.repeat(1_000_000)])),
  bodyCase('value/usage-proto', 'SignerValidationFailure', () =>
    replaced('spec.usages', ['client auth', '__proto__', 'constructor', 'toString']),
  ),
  bodyCase('value/usage-escape-sequence', 'SignerValidationFailure', () =>
    replaced('spec.usages', ['client auth', '\u001b[2J\r\nx\u202e\ud800']),
  ),
  bodyCase('value/usage-other-case', 'SignerValidationFailure', () => replaced('spec.usages', ['Client Auth'])),
  bodyCase('value/usage-blank-behind', 'SignerValidationFailure', () => replaced('spec.usages', ['client auth '])),
  bodyCase('value/no-usages', 'SignerValidationFailure', () => replaced('spec.usages', [])),
  bodyCase('value/1000-conditions', ['issued', 'invalid'], () =>
    replaced(
      'status.conditions',
      many(1_000, () => approved),
    ),
  ),
  bodyCase('value/30000-conditions', 'invalid', () =>
    replaced(
      'status.conditions',
      many(30_000, () => approved),
    ),
  ),
  bodyCase('value/approved-in-lower-case', 'ignored', () =>
    replaced('status.conditions', [{ type: 'approved', status: 'True' }]),
  ),
  bodyCase('value/approved-unknown', 'ignored', () =>
    replaced('status.conditions', [{ type: 'Approved', status: 'Unknown' }]),
  ),
  bodyCase('value/approved-and-not', 'ignored', () =>
    replaced('status.conditions', [approved, { type: 'Approved', status: 'False' }]),
  ),
  bodyCase('value/approved-and-denied', 'ignored', () =>
    replaced('status.conditions', [approved, { type: 'Denied', status: 'False' }]),
  ),
  bodyCase('value/approved-and-failed', 'ignored', () => replaced('status.conditions', [approved, { type: 'Failed' }])),
  bodyCase('value/approved-is-a-list', 'invalid', () =>
    replaced('status.conditions', [{ type: ['Approved'], status: 'True' }]),
  ),
  bodyCase('value/conditions-object', 'invalid', () => replaced('status.conditions', { 0: approved, length: 1 })),
  bodyCase('value/other-signer', 'ignored', () => replaced('spec.signerName', 'example.com/x')),
  bodyCase('value/signer-proto', 'ignored', () => replaced('spec.signerName', '__proto__')),
  bodyCase('value/signer-of-571', 'ignored', () => replaced('spec.signerName', `a.b/${'c'.repeat(567)}`)),
  bodyCase('value/signer-of-1-mb', 'invalid', () => replaced('spec.signerName', 'a'.repeat(1_000_000))),
  bodyCase('value/v2', 'invalid', () => replaced('apiVersion', 'certificates.k8s.io/v2')),
  bodyCase('value/list', 'invalid', () => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequestList',
    items: [object()],
  })),
  bodyCase('value/v1beta1-without-signer', 'issued', () => {
    // Neither kubelet signer fits, so the default is legacy-unknown.
    return replaced('spec.signerName', undefined, { ...object(), apiVersion: 'certificates.k8s.io/v1beta1' });
  }),
];

export const jsonFieldCases: readonly HostileCase[] = [
  ...types,
  ...unreadTypes,
  ...numbers,
  ...identifiers,
  ...base64Forms,
  ...base64More,
  ...values,
];
