/** The answer to a request that its signer does not permit: final, with all reasons, and never 2xx. */
import { randomBytes } from 'node:crypto';
import { refusalCodes } from '../../../core/outcome/outcome.ts';
import { newKey, otherName, pemBlock } from '../../harness/x509/requests.ts';
import type { SanSpec } from '../../harness/x509/requests.ts';
import * as der from '../../harness/x509/der-writer.ts';
import { causesOf, certificateField, record, statusAndMessage } from '../answers.ts';
import type { Answer } from '../answers.ts';
import { at, unless } from '../check.ts';
import type { Check, Finding } from '../check.ts';
import { inTree, manyFaults } from '../in-tree-cases.ts';
import type { InTreeCase } from '../in-tree-cases.ts';
import { ask } from '../questions.ts';
import type { ObjectChange, SignerName, SignerQuestion } from '../questions.ts';
import type { World } from '../world.ts';

/** One in-tree case of each served signer, or all. */
async function inTreeAnswers(world: World, all: boolean): Promise<readonly (InTreeCase & { answer: Answer })[]> {
  const answers = [];
  for (const { question } of await world.issuances()) {
    const cases = inTree[question.signerName];
    for (const each of all ? cases : cases.slice(0, 1)) {
      const fresh = world.questionFor(question.signerName);
      const answer = await world.sign(ask(fresh, each.change(fresh)).object);
      answers.push({ ...each, what: `${question.signerName}, ${each.what}`, answer });
    }
  }
  return answers;
}

/** What is wrong with an answer that should be a refusal for `code`. */
function notRefused(answer: Answer, ...codes: readonly string[]): readonly string[] {
  return notRefusedWith(422, answer, ...codes);
}

function notRefusedWith(expected: 413 | 422, answer: Answer, ...codes: readonly string[]): readonly string[] {
  const { status, json } = answer;
  const reasons = causesOf(json).map(({ reason }) => String(reason));
  return [
    ...unless(status === expected, statusAndMessage(answer)),
    ...unless(certificateField(json) === undefined, 'the refusal holds a certificate'),
    ...unless(
      status !== expected || codes.length === 0 || codes.some((code) => reasons.includes(code)),
      `refused for ${reasons.join(', ') || 'no reason'}, not for ${codes.join(' or ')}`,
    ),
  ];
}

/** Sends each case to the first served signer, which must refuse it with one of the codes. */
function refusedFor(
  codes: readonly string[],
  cases: (question: SignerQuestion) => Readonly<Record<string, ObjectChange>>,
): (world: World) => Promise<Finding> {
  return async (world) => {
    const { signerName } = await world.question();
    const problems: string[] = [];
    const names = Object.keys(cases(world.questionFor(signerName)));
    for (const what of names) {
      const question = world.questionFor(signerName);
      const answer = await world.sign(ask(question, cases(question)[what]).object);
      problems.push(...at(what, notRefused(answer, ...codes)));
    }
    return { problems, note: names.join(', ') };
  };
}

export const refusedChecks: readonly Check[] = [
  {
    id: 'refused',
    rule: 'a request that the signer does not permit is answered 422, never 2xx, without a certificate, also the second time',
    source: 'docs/signing-api.md; the webhook client treats any 2xx as success',
    async run(world) {
      const { signerName } = await world.question();
      const [first] = inTree[signerName];
      const question = world.questionFor(signerName);
      const { object } = ask(question, first?.change(question));
      const [once, again] = [await world.sign(object), await world.sign(object)];
      return {
        problems: [...notRefused(once), ...at('the second time', notRefused(again))],
      };
    },
  },
  {
    id: 'refused-reason',
    rule: 'a refusal names its reasons: details.causes has known codes, and their messages are joined in message',
    source: 'docs/signing-api.md, Refusal codes; the relay writes Failed only for reasons it knows',
    needs: ['refused'],
    async run(world) {
      const problems = (await inTreeAnswers(world, false)).flatMap(({ what, answer: { json } }) => {
        const causes = causesOf(json);
        const unknown = causes.filter(({ reason }) => !(refusalCodes as readonly unknown[]).includes(reason));
        return at(what, [
          ...unless(causes.length > 0, 'no details.causes'),
          ...unknown.map(({ reason }) => `unknown reason ${JSON.stringify(reason)}`),
          ...unless(
            causes.map(({ message }) => message).join('; ') === record(json)['message'],
            'message is not the messages of the causes, joined by "; "',
          ),
        ]);
      });
      return { problems };
    },
  },
  {
    id: 'refused-text',
    rule: 'a request that kube-controller-manager refuses is refused with SignerValidationFailure, and the message starts with its text',
    source: 'docs/signers.md; kube-controller-manager 1.36.3, pkg/apis/certificates/helpers.go',
    needs: ['refused'],
    async run(world) {
      const answers = await inTreeAnswers(world, true);
      const problems = answers.flatMap(({ what, answer, text }) => {
        const message = String(record(answer.json)['message']);
        return at(what, [
          ...notRefused(answer, 'SignerValidationFailure'),
          ...unless(
            message === text || message.startsWith(`${text}; `),
            `message is ${JSON.stringify(message.slice(0, 120))}, not ${JSON.stringify(text)}`,
          ),
        ]);
      });
      return { problems, note: `${answers.length} rules` };
    },
  },
  {
    id: 'refused-all',
    rule: 'a refusal lists all violations, in the order of the in-tree signer',
    source: 'docs/signing-api.md: message has all violations, so that one new request can correct them',
    needs: ['refused-text'],
    async run(world) {
      const problems: string[] = [];
      for (const { question } of await world.issuances()) {
        const { change, texts } = manyFaults[question.signerName];
        const { json } = await world.sign(ask(world.questionFor(question.signerName), change).object);
        const listed = String(record(json)['message']).split('; ');
        const found = listed.filter((text) => texts.includes(text));
        problems.push(
          ...at(question.signerName, [
            ...unless(
              listed[0] === texts[0],
              `begins with ${JSON.stringify(listed[0])}, not ${JSON.stringify(texts[0])}`,
            ),
            ...unless(found.join() === texts.join(), `lists ${found.length} of ${texts.length}: ${found.join('; ')}`),
          ]),
        );
      }
      return { problems };
    },
  },
  {
    id: 'refused-unreadable',
    rule: 'a request that is not a PKCS #10 request, or can be read in more than one way, is refused: RequestMalformed',
    source: 'docs/signers.md, deviations 8 and 10; kube-controller-manager tries such requests for ever',
    needs: ['refused'],
    run: refusedFor(['RequestMalformed'], (question) => {
      const { pem, der: whole } = ask(question).made;
      return {
        'not PEM': { pem: 'not a request' },
        'no DER inside': { pem: pemBlock('CERTIFICATE REQUEST', Buffer.from('not DER')) },
        'two requests': { pem: `${pem}${ask(question).made.pem}` },
        'text before': { pem: `Certificate Request:\n${pem}` },
        'bytes after it': { pem: pemBlock('CERTIFICATE REQUEST', Buffer.concat([whole, Buffer.from([5, 0])])) },
      };
    }),
  },
  {
    id: 'refused-possession',
    rule: 'a request not signed by its own key is refused: SignatureInvalid',
    source: 'docs/signers.md, deviation 5; RFC 2986 §3: the requester proves possession of the key',
    needs: ['refused'],
    run: refusedFor(['SignatureInvalid'], () => ({
      'another key in it': { request: { spki: newKey('P-256').spki } },
      'a changed signature': { request: { info: (info) => info, signature: changed } },
    })),
  },
  {
    id: 'refused-key',
    rule: 'weak keys and digests are refused: KeyNotPermitted',
    source: 'docs/signers.md, deviation 2',
    needs: ['refused'],
    run: refusedFor(['KeyNotPermitted'], () => ({
      'RSA-1024': { request: { key: newKey('RSA-1024') } },
      'P-224': { request: { key: newKey('P-224') } },
      'SHA-1': { request: { hash: 'sha1' } },
    })),
  },
  {
    id: 'refused-name',
    rule: 'reserved names, and names of types that are never signed, are refused: NameReserved, SanNotPermitted',
    source: 'docs/signers.md, deviations 4, 7 and 9',
    needs: ['refused'],
    run: refusedNames,
  },
  {
    id: 'refused-reserved',
    rule: 'names of the control plane are refused, whatever their case: NameReserved',
    source: 'docs/signers.md, deviation 14; installers and RBAC bindings give such names their rights',
    needs: ['refused'],
    run: refusedByAll('NameReserved', controlPlaneNames),
  },
  {
    id: 'refused-lookalike',
    rule: 'names with hidden characters, with blanks at an end or without any character are refused: RequestMalformed',
    source:
      'docs/signers.md, deviation 16; RFC 4518, which the comparison of names uses (RFC 5280 §7.1); RFC 9110 §5.5',
    needs: ['refused'],
    run: refusedByAll('RequestMalformed', lookalikes),
  },
  {
    id: 'refused-serving-name',
    rule: 'serving certificates for names that no node may have are refused: NameReserved, SanNotPermitted',
    source: 'docs/signers.md, deviation 15; with one a node could impersonate a service or the API server',
    needs: ['refused'],
    run: refusedServingNames,
  },
  {
    id: 'refused-many-names',
    rule: 'a request with 257 subjectAltNames is refused: 413, RequestTooLarge',
    source: 'docs/signers.md, deviation 11; each name is compared with each pattern of the profile',
    needs: ['refused'],
    async run(world) {
      const dns = Array.from({ length: 257 }, (_, index) => `n${index}.countersign-conformance.invalid`);
      const { object } = ask(await world.question(), { request: { sans: { dns } } });
      return { problems: notRefusedWith(413, await world.sign(object), 'RequestTooLarge') };
    },
  },
  {
    id: 'refused-usage',
    rule: 'empty and unknown usages are refused: UsageNotPermitted, or SignerValidationFailure with the in-tree text',
    source:
      'docs/signers.md, deviations 7 and 8; RFC 5280 §4.2.1.12: a certificate without extended usages is valid for all',
    needs: ['refused'],
    run: refusedFor(['UsageNotPermitted', 'SignerValidationFailure'], ({ usages }) => ({
      'no usages': { spec: { usages: [] } },
      'an unknown usage': { spec: { usages: [...usages, 'flying'] } },
    })),
  },
];

/** Still DER of two integers, so that only the verification can detect it. */
function changed(): Uint8Array {
  const integer = (): Buffer => der.tlv(0x02, Buffer.concat([Buffer.from([0x11]), randomBytes(31)]));
  return der.sequence(integer(), integer());
}

/** Sends each case to every served signer, which must refuse it with this code. */
function refusedByAll(
  code: string,
  cases: (question: SignerQuestion) => Readonly<Record<string, ObjectChange>>,
): (world: World) => Promise<Finding> {
  return async (world) => {
    const problems: string[] = [];
    const notes: string[] = [];
    for (const { question } of await world.issuances()) {
      const { signerName } = question;
      const names = Object.keys(cases(world.questionFor(signerName)));
      notes.push(`${signerName.replace('kubernetes.io/', '')}: ${names.join(', ')}`);
      for (const what of names) {
        const fresh = world.questionFor(signerName);
        const answer = await world.sign(ask(fresh, cases(fresh)[what]).object);
        problems.push(...at(`${signerName}, ${what}`, notRefused(answer, code)));
      }
    }
    return { problems, note: notes.join('; ') };
  };
}

/**
 * Names of the control plane that no installer uses: if the endpoint issues one, the certificate has no rights. Each matches
 * a pattern of docs/signers.md, deviation 14.
 */
function controlPlaneNames({ signerName }: SignerQuestion): Readonly<Record<string, ObjectChange>> {
  if (signerName !== 'kubernetes.io/kube-apiserver-client') return {};
  const asUser = (CN: string): ObjectChange => ({ request: { subject: { O: 'countersign-conformance', CN } } });
  return {
    kubeadm: { request: { subject: { O: 'kubeadm:countersign-conformance', CN: 'countersign-conformance' } } },
    'a front proxy': asUser('front-proxy-countersign-conformance'),
    'an API server': asUser('kube-apiserver-countersign-conformance'),
    'an etcd client': asUser('etcd-countersign-conformance'),
    'an etcd client in capitals': asUser('ETCD-Countersign-Conformance'),
  };
}

/** Names that look like those that the signer issues. */
function lookalikes(question: SignerQuestion): Readonly<Record<string, ObjectChange>> {
  const { O, CN } = question.subject as Readonly<Record<'O' | 'CN', string>>;
  const named = (subject: Readonly<Record<string, string>>): ObjectChange => ({ request: { subject } });
  const dns = (name: string): ObjectChange => ({
    request: { sans: { ...question.sans, dns: [...(question.sans?.dns ?? []), name] } },
  });
  return {
    'a blank before O': named({ O: ` ${O}`, CN }),
    'a blank after CN': named({ O, CN: `${CN} ` }),
    'a zero width space in O': named({ O: `${O}\u200b`, CN }),
    'a bidirectional override in CN': named({ O, CN: `${CN}\u202e` }),
    'a no-break space in CN': named({ O, CN: `${CN}\u00a0x` }),
    'an empty O': named({ O: '', CN }),
    'an empty CN': named({ O, CN: '' }),
    'an empty DNS name': dns(''),
    'a blank in a DNS name': dns('a b.invalid'),
    'two DNS names in one': dns('a.invalid,DNS:b.invalid'),
  };
}

async function refusedNames(world: World): Promise<Finding> {
  const cases: (readonly [what: string, signerName: SignerName, change: ObjectChange, code: string])[] = [];
  for (const { question } of await world.issuances()) {
    const { signerName, sans } = question;
    const raw = [otherName('1.3.6.1.4.1.311.20.2.3', der.utf8('user'))];
    const otherSan: ObjectChange = { request: { sans: { ...sans, raw } } };
    cases.push([`${signerName}, otherName`, signerName, otherSan, 'SanNotPermitted']);
    cases.push(
      signerName === 'kubernetes.io/kube-apiserver-client'
        ? // Not system:masters: an endpoint that permits it would issue such a certificate to these checks.
          [`${signerName}, a node`, signerName, { request: { subject: { CN: 'system:node:x' } } }, 'NameReserved']
        : [`${signerName}, no node`, signerName, { request: { subject: noNode } }, 'NameReserved'],
    );
  }
  const problems: string[] = [];
  for (const [what, signerName, change, code] of cases)
    problems.push(...at(what, notRefused(await world.sign(ask(world.questionFor(signerName), change).object), code)));
  return { problems, note: cases.map(([what]) => what.replace('kubernetes.io/', '')).join('; ') };
}

/** Names and addresses that no host has, in case an endpoint issues one. */
const namesOfNoNode: Readonly<Record<string, SanSpec>> = {
  'a service': { dns: ['countersign-conformance.none.svc'] },
  'a service, with a domain': { dns: ['countersign-conformance.none.svc.cluster.local'] },
  'a wildcard': { dns: ['*.countersign-conformance.invalid'] },
  'an address as a DNS name': { dns: ['192.0.2.7'] },
  'no host name': { dns: ['-countersign-conformance.invalid'] },
  loopback: { ip: ['127.86.9.13'] },
  'multicast, IPv6': { ip: ['ff0e::db8:0:7'] },
};

async function refusedServingNames(world: World): Promise<Finding> {
  const signerName = 'kubernetes.io/kubelet-serving';
  if (!(await world.serves(signerName))) return { skipped: `${signerName} is not served` };
  const problems: string[] = [];
  for (const [what, { dns = [], ip = [] }] of Object.entries(namesOfNoNode)) {
    const sans = { dns: ['b.invalid', ...dns], ip };
    const { object } = ask(world.questionFor(signerName), { request: { sans } });
    problems.push(...at(what, notRefused(await world.sign(object), 'NameReserved', 'SanNotPermitted')));
  }
  return { problems, note: Object.keys(namesOfNoNode).join(', ') };
}

const noNode = { O: 'system:nodes', CN: 'system:node:' };
