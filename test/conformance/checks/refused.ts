/** What a request gets that its signer does not permit: a refusal for good, in words that help, and never a 2xx. */
import { randomBytes } from 'node:crypto';
import { refusalCodes } from '../../../core/outcome.ts';
import { newKey, otherName, pemBlock } from '../../harness/requests.ts';
import * as der from '../../harness/der-writer.ts';
import { causesOf, certificateField, record, saidBy } from '../answers.ts';
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
  const { status, json } = answer;
  const reasons = causesOf(json).map(({ reason }) => String(reason));
  return [
    ...unless(status === 422, saidBy(answer)),
    ...unless(certificateField(json) === undefined, 'a certificate comes with the refusal'),
    ...unless(
      status !== 422 || codes.length === 0 || codes.some((code) => reasons.includes(code)),
      `refused for ${reasons.join(', ') || 'no reason'}, not for ${codes.join(' or ')}`,
    ),
  ];
}

/** Asks the first served signer for each of these, all of which have to be refused for one of the codes. */
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
    rule: 'what the signer does not permit is answered 422, never 2xx, without a certificate; asked again, the same',
    source: 'docs/signing-api.md; the webhook client takes any 2xx as success',
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
    rule: 'a refusal names its reasons: details.causes with known codes, and their messages are the message',
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
            'message is not that of the causes, joined by "; "',
          ),
        ]);
      });
      return { problems };
    },
  },
  {
    id: 'refused-text',
    rule: 'what kube-controller-manager would refuse is refused with SignerValidationFailure, its text first',
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
    rule: 'a refusal tells all that is wrong, in the order of the in-tree signer',
    source: 'docs/signing-api.md: message has all violations, so that one new request mends them',
    needs: ['refused-text'],
    async run(world) {
      const problems: string[] = [];
      for (const { question } of await world.issuances()) {
        const { change, texts } = manyFaults[question.signerName];
        const { json } = await world.sign(ask(world.questionFor(question.signerName), change).object);
        const told = String(record(json)['message']).split('; ');
        const found = told.filter((text) => texts.includes(text));
        problems.push(
          ...at(question.signerName, [
            ...unless(told[0] === texts[0], `begins with ${JSON.stringify(told[0])}, not ${JSON.stringify(texts[0])}`),
            ...unless(found.join() === texts.join(), `tells ${found.length} of ${texts.length}: ${found.join('; ')}`),
          ]),
        );
      }
      return { problems };
    },
  },
  {
    id: 'refused-unreadable',
    rule: 'a request that is no CSR, or more than one reading of one, is refused: RequestMalformed',
    source: 'docs/signers.md, deviations 8 and 10; kube-controller-manager tries such requests for ever',
    needs: ['refused'],
    run: refusedFor(['RequestMalformed'], (question) => {
      const { pem, der: whole } = ask(question).made;
      return {
        'not PEM': { pem: 'not a request' },
        'no DER inside': { pem: pemBlock('CERTIFICATE REQUEST', Buffer.from('not DER')) },
        'two requests': { pem: `${pem}${ask(question).made.pem}` },
        'text before': { pem: `Certificate Request:\n${pem}` },
        'bytes behind': { pem: pemBlock('CERTIFICATE REQUEST', Buffer.concat([whole, Buffer.from([5, 0])])) },
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
    rule: 'reserved names, and names nobody signs, are refused: NameReserved, SanNotPermitted',
    source: 'docs/signers.md, deviations 4, 7 and 9',
    needs: ['refused'],
    run: refusedNames,
  },
  {
    id: 'refused-usage',
    rule: 'empty and unknown usages are refused: UsageNotPermitted, or in the words of the in-tree signer',
    source: 'docs/signers.md, deviations 7 and 8; RFC 5280 §4.2.1.12: without extended usages it is valid for all',
    needs: ['refused'],
    run: refusedFor(['UsageNotPermitted', 'SignerValidationFailure'], ({ usages }) => ({
      'no usages': { spec: { usages: [] } },
      'an unknown usage': { spec: { usages: [...usages, 'flying'] } },
    })),
  },
];

/** Still DER of two integers, so that nothing but the verification can find it. */
function changed(): Uint8Array {
  const integer = (): Buffer => der.tlv(0x02, Buffer.concat([Buffer.from([0x11]), randomBytes(31)]));
  return der.sequence(integer(), integer());
}

async function refusedNames(world: World): Promise<Finding> {
  const cases: (readonly [what: string, signerName: SignerName, change: ObjectChange, code: string])[] = [];
  for (const { question } of await world.issuances()) {
    const { signerName, sans } = question;
    const raw = [otherName('1.3.6.1.4.1.311.20.2.3', der.utf8('somebody'))];
    const otherSan: ObjectChange = { request: { sans: { ...sans, raw } } };
    cases.push([`${signerName}, otherName`, signerName, otherSan, 'SanNotPermitted']);
    cases.push(
      signerName === 'kubernetes.io/kube-apiserver-client'
        ? // Never system:masters: were it permitted, these checks would get such a certificate.
          [`${signerName}, a node`, signerName, { request: { subject: { CN: 'system:node:x' } } }, 'NameReserved']
        : [`${signerName}, no node`, signerName, { request: { subject: noNode } }, 'NameReserved'],
    );
  }
  const problems: string[] = [];
  for (const [what, signerName, change, code] of cases)
    problems.push(...at(what, notRefused(await world.sign(ask(world.questionFor(signerName), change).object), code)));
  return { problems, note: cases.map(([what]) => what.replace('kubernetes.io/', '')).join('; ') };
}

const noNode = { O: 'system:nodes', CN: 'system:node:' };
