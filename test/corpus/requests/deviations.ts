/**
 * Everything in which we differ from the reference, by its number in docs/signers.md: a request each, what the
 * reference makes of it, and what we do. Both sides are measured in the oracle suite.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as der from '../../harness/x509/der-writer.ts';
import {
  attribute,
  directoryName,
  encodeExtensions,
  encodeSans,
  extensionRequestType,
  makeRequest,
  otherName,
  pemBlock,
  registeredId,
} from '../../harness/x509/requests.ts';
import type { AttributeSpec, RequestSpec, SanSpec } from '../../harness/x509/requests.ts';
import type { RefusalCode } from '../../../core/outcome/outcome.ts';

export interface Deviation {
  /** In docs/signers.md. */
  readonly number: number;
  readonly what: string;
  readonly signerName: string;
  readonly request: Buffer;
  readonly usages?: readonly string[];
  readonly expirationSeconds?: number;
  /** Other than one Approved condition with status True; no update of today's API server could write them. */
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  /**
   * Part of what the API server answers to a client that tries to create it. Such an object is written to etcd, as a cluster
   * of an older version left it there.
   */
  readonly notCreatable?: string;
  /** `{ retries }`: neither, for ever; part of what it logs each time. */
  readonly reference: 'issued' | { readonly retries: string };
  readonly ours: { readonly code: RefusalCode; readonly says: string } | { readonly ignores: string };
}

const client = 'kubernetes.io/kube-apiserver-client';
const kubelet = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const legacy = 'kubernetes.io/legacy-unknown';

type Rest = Partial<Deviation> & Pick<Deviation, 'ours'>;

/** Of kube-apiserver-client, with a usage that it signs, unless told otherwise. */
function deviation(number: number, what: string, spec: RequestSpec | Buffer, rest: Rest): Deviation {
  const request = Buffer.isBuffer(spec) ? spec : makeRequest({ subject: { CN: 'deviation' }, ...spec }).bytes;
  return { number, what, request, signerName: client, reference: 'issued', ...rest };
}

function refused(code: RefusalCode, says: string): { ours: { code: RefusalCode; says: string } } {
  return { ours: { code, says } };
}

const ignored = (ignores: string): { ours: { ignores: string } } => ({ ours: { ignores } });

function node(commonName: string): RequestSpec {
  return { subject: { O: 'system:nodes', CN: commonName } };
}

const kubeletClient = { signerName: kubelet, usages: ['digital signature', 'client auth'] };
const kubeletServing = { signerName: serving, usages: ['digital signature', 'server auth'] };

/** Encoded by hand: kinds of name that no ordinary tool would write. */
function raw(...names: Buffer[]): RequestSpec {
  return { sans: { dns: ['also.example'], raw: names } };
}

function uri(text: string): RequestSpec {
  return { sans: { uri: [text] } };
}

function subjectOf(...attributes: readonly AttributeSpec[]): RequestSpec {
  return { subject: attributes.map((each) => [each]) };
}

export function deviations(): Deviation[] {
  const good = makeRequest({ subject: { CN: 'deviation' } });
  return [
    ...keysAndDigests(),
    deviation(
      3,
      'system:masters',
      { subject: { O: 'system:masters', CN: 'root' } },
      {
        ...refused('NameReserved', 'organization "system:masters"'),
        notCreatable: 'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
      },
    ),
    ...otherSanTypes(),
    deviation(
      5,
      'a broken self-signature',
      { signature: flipped },
      {
        ...refused('SignatureInvalid', 'the self-signature does not verify'),
        notCreatable: 'verification failure',
        reference: { retries: 'unable to verify certificate request signature' },
      },
    ),
    deviation(
      5,
      'a self-signature by another key',
      { spki: makeRequest({ key: 'P-384' }).key.spki },
      {
        ...refused('SignatureInvalid', 'the self-signature does not verify'),
        notCreatable: 'verification failure',
        reference: { retries: 'unable to verify certificate request signature' },
      },
    ),
    ...conditions(),
    ...names(),
    deviation(
      7,
      'no usages',
      {},
      {
        ...refused('UsageNotPermitted', 'usages are empty'),
        signerName: legacy,
        usages: [],
        notCreatable: 'spec.usages: Required value',
        reference: { retries: 'spec.usages: Required value' },
      },
    ),
    deviation(8, 'what is no PEM', Buffer.from('nonsense'), {
      ...refused('RequestMalformed', 'spec.request has text before the first block'),
      notCreatable: 'PEM block type must be CERTIFICATE REQUEST',
      reference: { retries: 'PEM block type must be CERTIFICATE REQUEST' },
    }),
    deviation(8, 'what is no DER', Buffer.from(pemBlock('CERTIFICATE REQUEST', Buffer.from('30030201', 'hex'))), {
      ...refused('RequestMalformed', 'is not DER'),
      notCreatable: 'asn1',
      reference: { retries: 'unable to parse csr' },
    }),
    deviation(
      8,
      'the label of other software',
      Buffer.from(good.pem.replaceAll('CERTIFICATE REQ', 'NEW CERTIFICATE REQ')),
      {
        ...refused('RequestMalformed', 'has a block of another kind'),
        notCreatable: 'PEM block type must be CERTIFICATE REQUEST',
        reference: { retries: 'PEM block type must be CERTIFICATE REQUEST' },
      },
    ),
    deviation(
      8,
      'an unknown usage',
      {},
      {
        ...refused('UsageNotPermitted', 'usage "sewing" is unknown'),
        signerName: legacy,
        usages: ['client auth', 'sewing'],
        notCreatable: 'Unsupported value: "sewing"',
        reference: { retries: 'unrecognized usage values: ["sewing"]' },
      },
    ),
    ...nodeNames(),
    ...ambiguities(good.pem),
    ...controlPlane(),
    ...sizes(),
    ...namesOfNoNode(),
    ...lookalikes(),
    deviation(12, 'neither a subject nor names', { subject: [] }, refused('SubjectNotPermitted', 'would have no name')),
    deviation(
      12,
      'a subject of which nothing is kept',
      { subject: { emailAddress: 'a@example.com' } },
      refused('SubjectNotPermitted', 'would have no name'),
    ),
  ];
}

/** Both small enough for the API server and the reference. */
function sizes(): Deviation[] {
  return [
    deviation(
      11,
      '257 names',
      { sans: { dns: Array.from({ length: 257 }, (_, index) => `n${index}.example.com`) } },
      refused('RequestTooLarge', 'the request has 257 subjectAltNames, at most 256 are signed'),
    ),
    deviation(
      11,
      '257 organizations',
      subjectOf(...Array.from({ length: 257 }, (_, index): AttributeSpec => ['O', `team-${index}`])),
      refused('RequestTooLarge', 'the subject has more than 256 attributes'),
    ),
  ];
}

/** DNS names and addresses that are no node's; a profile that lists them gives them. */
const reservedHosts = [
  'kubernetes',
  'kubernetes.default.svc',
  'web.shop.svc',
  'a.cluster.local',
  'localhost',
  'etcd',
  'metadata.google.internal',
];
const reservedAddresses = ['127.0.0.1', '169.254.169.254', '224.0.0.1', '::1', '64:ff9b::a60:1'];
const faultyHosts = [
  ['*.example.com', 'is a wildcard'],
  ['10.96.0.1', 'reads as an address'],
  ['-a.example', 'is not a host name'],
] as const;
export const neverServed: readonly string[] = [
  ...reservedHosts,
  ...reservedAddresses,
  ...faultyHosts.map(([name]) => name),
];

function namesOfNoNode(): Deviation[] {
  const serves = (sans: SanSpec): RequestSpec => ({ ...node('system:node:n1'), sans });
  const named = (name: string) => refused('NameReserved', `subjectAltName "${name}" is reserved`);
  return [
    ...reservedHosts.map((name) =>
      deviation(15, `DNS name ${name}`, serves({ dns: ['n1', name] }), { ...named(name), ...kubeletServing }),
    ),
    ...reservedAddresses.map((name) =>
      deviation(15, `address ${name}`, serves({ dns: ['n1'], ip: [name] }), { ...named(name), ...kubeletServing }),
    ),
    ...faultyHosts.map(([name, fault]) =>
      deviation(15, `DNS name ${name}`, serves({ dns: ['n1', name] }), {
        ...refused('SanNotPermitted', `DNS subjectAltName "${name}" ${fault}`),
        ...kubeletServing,
      }),
    ),
  ];
}

function keysAndDigests(): Deviation[] {
  const tooSmall = refused('KeyNotPermitted', 'RSA key of 1024 bits');
  const sha1 = refused('KeyNotPermitted', 'SHA-1');
  const huge = readFileSync(join(import.meta.dirname, 'rsa-8208.pem'));
  return [
    deviation(2, 'RSA 1024', { key: 'RSA-1024' }, tooSmall),
    deviation(
      2,
      'RSA 1024 of a kubelet',
      { key: 'RSA-1024', ...node('system:node:n1') },
      { ...tooSmall, ...kubeletClient },
    ),
    deviation(2, 'RSA 8208', huge, refused('KeyNotPermitted', '8192')),
    deviation(2, 'P-224', { key: 'P-224' }, refused('KeyNotPermitted', 'ECDSA P-224')),
    deviation(2, 'RSA with SHA-1', { key: 'RSA-2048', hash: 'sha1' }, sha1),
    deviation(2, 'ECDSA with SHA-1', { key: 'P-256', hash: 'sha1' }, sha1),
    deviation(
      2,
      'SHA-1 of a serving kubelet',
      { ...node('system:node:n1'), sans: { dns: ['n1'] }, hash: 'sha1' },
      {
        ...sha1,
        ...kubeletServing,
      },
    ),
  ];
}

function otherSanTypes(): Deviation[] {
  const names: readonly (readonly [string, Buffer])[] = [
    ['otherName', otherName('1.3.6.1.4.1.311.20.2.3', der.utf8('alice@example.com'))],
    ['directoryName', directoryName({ CN: 'root' })],
    ['registeredID', registeredId('1.3.6.1.4.1.99999')],
    ['x400Address', der.constructed(3, der.sequence())],
    ['ediPartyName', der.constructed(5, der.constructed(1, der.utf8('party')))],
  ];
  return names.flatMap(([type, name]) => {
    const outcome = refused('SanNotPermitted', `a subjectAltName of type ${type} is not signed`);
    return [
      deviation(4, `${type} beside a DNS name`, raw(name), outcome),
      deviation(
        4,
        `${type} of a kubelet`,
        { ...node('system:node:n1'), sans: { raw: [name] } },
        { ...outcome, ...kubeletClient },
      ),
    ];
  });
}

function flipped(signature: Buffer): Buffer {
  const changed = Buffer.from(signature);
  changed[changed.length - 1]! ^= 1;
  return changed;
}

/**
 * The reference reads a condition's type and, of Failed, its status; so it signs all of these, and only the API server
 * stops it from writing the certificate, since it lets none of the three have another status than True today.
 */
function conditions(): Deviation[] {
  const other = (type: string, status: string) => ({
    conditions: [...(type === 'Approved' ? [] : [{ type: 'Approved', status: 'True' }]), { type, status }],
    reference: { retries: `status: Unsupported value: "${status}": supported values: "True"` },
  });
  return [
    deviation(6, 'Approved: False', {}, { ...other('Approved', 'False'), ...ignored('NotApproved') }),
    deviation(6, 'Approved: Unknown', {}, { ...other('Approved', 'Unknown'), ...ignored('NotApproved') }),
    deviation(6, 'Failed: False', {}, { ...other('Failed', 'False'), ...ignored('Failed') }),
  ];
}

function names(): Deviation[] {
  const reserved = (says: string) => refused('NameReserved', says);
  return [
    deviation(7, 'a user of the system', { subject: { CN: 'system:admin' } }, reserved('common name "system:admin"')),
    deviation(
      7,
      'a group of the system',
      { subject: { O: ['ops', 'system:monitoring'], CN: 'ops' } },
      reserved('organization "system:monitoring"'),
    ),
    deviation(7, 'a node', { subject: { CN: 'system:node:n1' } }, reserved('common name "system:node:n1"')),
    deviation(7, 'the nodes', { subject: { O: 'system:nodes', CN: 'n1' } }, reserved('organization "system:nodes"')),
    deviation(7, 'a node from another signer', node('system:node:n1'), reserved('common name "system:node:n1"')),
    deviation(
      7,
      'a user of the system, legacy-unknown',
      { subject: { CN: 'system:admin' } },
      {
        ...reserved('common name "system:admin"'),
        signerName: legacy,
        notCreatable: 'the legacy signerName is not allowed via this API version',
      },
    ),
    deviation(
      7,
      'a group of the system, legacy-unknown',
      { subject: { O: 'system:masters' } },
      {
        ...reserved('organization "system:masters"'),
        signerName: legacy,
        notCreatable: 'the legacy signerName is not allowed via this API version',
      },
    ),
  ];
}

/** Deviation 14; given by both where the profile lists them. */
function controlPlane(): Deviation[] {
  const reserved = (says: string) => refused('NameReserved', says);
  const legacyToo = {
    signerName: legacy,
    notCreatable: 'the legacy signerName is not allowed via this API version',
  };
  return [
    deviation(
      14,
      'cluster-admin of kubeadm',
      { subject: { O: 'kubeadm:cluster-admins', CN: 'kubernetes-admin' } },
      reserved('common name "kubernetes-admin"'),
    ),
    deviation(14, 'the front proxy', { subject: { CN: 'front-proxy-client' } }, reserved('"front-proxy-client"')),
    deviation(
      14,
      'the front proxy in capitals',
      { subject: { CN: 'Front-Proxy-Client' } },
      reserved('"Front-Proxy-Client"'),
    ),
    deviation(14, 'an etcd client', { subject: { O: 'dev', CN: 'etcd-client' } }, reserved('"etcd-client"')),
    deviation(
      14,
      'an API server in another form',
      { subject: { CN: 'ｋｕｂｅ-ａｐｉｓｅｒｖｅｒ' } },
      reserved('"ｋｕｂｅ-ａｐｉｓｅｒｖｅｒ"'),
    ),
    deviation(
      14,
      'an API server as organization',
      { subject: { O: 'kubelet-api', CN: 'a' } },
      reserved('"kubelet-api"'),
    ),
    deviation(
      14,
      'system:masters in capitals',
      { subject: { O: 'System:masters', CN: 'system' } },
      reserved('"System:masters"'),
    ),
    deviation(
      14,
      'the group of kubeadm, legacy-unknown',
      { subject: { O: 'kubeadm:cluster-admins' } },
      { ...reserved('"kubeadm:cluster-admins"'), ...legacyToo },
    ),
  ];
}

/** Deviation 16, for every signer. It has no switch. */
function lookalikes(): Deviation[] {
  const malformed = (says: string) => refused('RequestMalformed', says);
  const named = (what: string, subject: RequestSpec['subject'], says: string): Deviation =>
    deviation(16, what, subject === undefined ? {} : { subject }, malformed(says));
  const san = (what: string, sans: RequestSpec['sans'], says: string): Deviation =>
    deviation(16, what, sans === undefined ? {} : { sans }, malformed(says));
  return [
    named('a blank before a group', { O: ' system:masters', CN: 'a' }, 'a blank at an end of O'),
    named('a blank behind a user', { CN: 'system:admin ' }, 'a blank at an end of CN'),
    named('nothing but a blank', { O: 'dev', CN: ' ' }, 'a blank at an end of CN'),
    named('a zero width space', { O: 'system:\u200bmasters', CN: 'a' }, 'a hidden character in O'),
    named('a right-to-left override', { CN: '\u202enimda' }, 'a hidden character in CN'),
    named('a byte order mark', { CN: '\ufeffalice' }, 'a hidden character in CN'),
    named('a no-break space', { CN: 'Bob\u00a0Example' }, 'a hidden character in CN'),
    named('a private use character', { CN: 'a\ue000' }, 'a hidden character in CN'),
    named('an unassigned character', { CN: 'a\u0378' }, 'a hidden character in CN'),
    named('an empty organization', { O: '', CN: 'a' }, 'an empty O'),
    named('an empty common name', { O: 'dev', CN: '' }, 'an empty CN'),
    deviation(16, 'a node with a blank', node('system:node:n1 '), {
      ...malformed('a blank at an end of CN'),
      ...kubeletClient,
    }),
    deviation(
      16,
      'a serving node with an empty name',
      { ...node('system:node:n1'), sans: { dns: ['n1', ''] } },
      { ...malformed('a DNS name that is empty'), ...kubeletServing },
    ),
    san('an empty DNS name', { dns: ['a.example', ''] }, 'a DNS name that is empty'),
    san('a DNS name of two words', { dns: ['two words'] }, 'characters that no host name has'),
    san('two DNS names in one', { dns: ['a,DNS:b'] }, 'characters that no host name has'),
    san('an empty mail address', { email: [''] }, 'an email address that is empty'),
    san('a mail address with a name', { email: ['Alice <alice@example.com>'] }, 'a blank or a comma'),
    deviation(
      16,
      'a blank before a group, legacy-unknown',
      { subject: { O: ' system:masters' } },
      {
        ...malformed('a blank at an end of O'),
        signerName: legacy,
        notCreatable: 'the legacy signerName is not allowed via this API version',
      },
    ),
  ];
}

function nodeNames(): Deviation[] {
  const nameless = ['', 'UPPER', 'a_b', '../../x', 'a..b', '-n1', 'x'.repeat(254), 'nö'];
  return nameless.map((name, index) => {
    const of = index % 2 === 0 ? kubeletClient : kubeletServing;
    const spec = { ...node(`system:node:${name}`), ...(of === kubeletServing ? { sans: { dns: ['n1'] } } : {}) };
    return deviation(9, `node name "${name.slice(0, 20)}"`, spec, {
      ...refused('NameReserved', 'does not name a node'),
      ...of,
    });
  });
}

/** What the reference reads in its own way, where another reader might read something else. */
function ambiguities(pem: string): Deviation[] {
  const malformed = (says: string) => refused('RequestMalformed', says);
  const second = makeRequest({ subject: { CN: 'another' } }).pem;
  const text = (what: string, content: string, says: string): Deviation =>
    deviation(10, what, Buffer.from(content), malformed(says));
  const san = (dns: string) => encodeExtensions([{ oid: '2.5.29.17', value: encodeSans({ dns: [dns] }) }]);
  const longOid = `1.3.6.1.4.1${'.99999'.repeat(25)}`;
  return [
    text('text before the block', `Certificate Request:\n${pem}`, 'has text before'),
    text(
      'a block of another kind behind the request',
      `${pem}${pemBlock('CERTIFICATE', Buffer.from('3003020107', 'hex'))}`,
      'has a block of another kind',
    ),
    text('text behind the block', `${pem}that was it\n`, 'has text after'),
    text('a second request', `${pem}${second}`, 'has a second CERTIFICATE REQUEST block'),
    text('headers', pem.replace('REQUEST-----\n', 'REQUEST-----\nComment: none\n\n'), 'has a header'),
    text('blanks in base64', pem.replace('\nMI', '\n MI'), 'not canonical base64'),
    deviation(
      10,
      'a control character in a subject',
      subjectOf(['CN', der.utf8('a\u0000b')]),
      malformed('control character'),
    ),
    deviation(
      10,
      'a BMPString that ends in NUL',
      subjectOf(['CN', der.bmp('a\u0000')]),
      malformed('control character'),
    ),
    deviation(
      10,
      'a common name that is a number',
      subjectOf(['O', 'x'], ['CN', der.integer(7)]),
      malformed('not a valid string'),
    ),
    deviation(
      10,
      'a UniversalString',
      subjectOf(['O', 'x'], ['CN', der.universal('u')]),
      malformed('not a valid string'),
    ),
    deviation(10, 'an empty RDN', { subject: [[], [['CN', 'x']]] }, malformed('not a set of attributes')),
    deviation(10, 'an attribute of three parts', { rawSubject: threeParts }, malformed('not a type and a value')),
    deviation(10, 'a NUL in a DNS name', { sans: { dns: ['a.example\0.evil'] } }, malformed('control character')),
    deviation(10, 'a name type there is not', raw(der.primitive(9, Buffer.from('x'))), malformed('no known type')),
    deviation(10, 'a URI with a capital scheme', uri('HTTPS://example.com/'), malformed('normal form')),
    deviation(10, 'a URI with blanks', uri('https://example.com/a b'), malformed('normal form')),
    deviation(10, 'a URI with an empty fragment', uri('https://example.com/#'), malformed('normal form')),
    deviation(10, 'a relative URI', uri('no/scheme'), malformed('normal form')),
    deviation(10, 'a request of version 2', { version: der.integer(1) }, malformed('a version other than 0')),
    deviation(
      10,
      'an invalid attribute',
      { attributes: [der.sequence(der.integer(1))] },
      malformed('not a type and values'),
    ),
    deviation(
      10,
      'extensions in two attributes',
      {
        rawAttributes: der.constructed(
          0,
          attribute(extensionRequestType, san('a.example')),
          attribute(extensionRequestType, encodeExtensions([{ oid: '1.2.3.4', value: der.nothing() }])),
        ),
      },
      malformed('more or less than one value'),
    ),
    deviation(
      10,
      'extensions in two values',
      { rawAttributes: der.constructed(0, attribute(extensionRequestType, san('a.example'), san('b.example'))) },
      malformed('more or less than one value'),
    ),
    deviation(
      11,
      'an object identifier of 80 octets',
      { extensions: [{ oid: longOid, value: der.nothing() }] },
      malformed('OBJECT IDENTIFIER of more than'),
    ),
    deviation(
      11,
      'more than 256 names',
      { sans: { dns: Array.from({ length: 257 }, (_, index) => `n${index}`) } },
      refused('RequestTooLarge', 'the request has 257 subjectAltNames'),
    ),
    deviation(
      11,
      'more than 10 000 names',
      { sans: { dns: Array.from({ length: 10_001 }, () => 'n') } },
      malformed('has more than 10000 elements'),
    ),
    deviation(
      11,
      'a request of more than 128 KiB',
      { sans: { dns: Array.from({ length: 500 }, () => 'n'.repeat(250)) } },
      refused('RequestTooLarge', 'spec.request is too large'),
    ),
  ];
}

const threeParts = der.sequence(der.setOf(der.sequence(der.oid('2.5.4.3'), der.utf8('shown'), der.utf8('hidden'))));
