/** One certificate per UID: repeated and simultaneous deliveries, and other requests with a used UID. */
import { certificateField, causesOf, chainOf } from '../answers.ts';
import type { Answer } from '../answers.ts';
import { at, unless } from '../check.ts';
import type { Check } from '../check.ts';
import { ask } from '../questions.ts';
import { notIssued } from '../certificate.ts';

export const repeatChecks: readonly Check[] = [
  {
    id: 'repeat',
    rule: 'the same bytes delivered again get the same certificate',
    source: 'docs/signing-api.md; the webhook client tries again after an answer that it lost or could not use',
    needs: ['issued'],
    async run(world) {
      const [first] = await world.issuances();
      if (first === undefined) return { skipped: 'nothing was issued' };
      const expected = certificateField(first.answer.json);
      const problems: string[] = [];
      for (const time of ['second', 'third']) {
        const again = await world.sign(first.object);
        problems.push(...at(`the ${time} time`, notSame(again, expected)));
      }
      return { problems };
    },
  },
  {
    id: 'repeat-metadata',
    rule: 'a repeated request whose metadata or conditions have changed (resourceVersion, labels) gets the same certificate',
    source: 'docs/signing-api.md: a UID has one certificate; every try of the relay sends a newer object',
    needs: ['issued'],
    async run(world) {
      const [first] = await world.issuances();
      if (first === undefined) return { skipped: 'nothing was issued' };
      const { object, answer } = first;
      const [condition] = object.status['conditions'] as readonly object[];
      const changed = {
        ...object,
        metadata: { ...object.metadata, resourceVersion: '4712', labels: { changed: 'yes' } },
        status: { ...object.status, conditions: [{ ...condition, message: 'another message' }] },
      };
      return { problems: notSame(await world.sign(changed), certificateField(answer.json)) };
    },
  },
  {
    id: 'concurrent',
    rule: 'the same bytes delivered many times simultaneously get one certificate; some may be answered 503 (try again)',
    source: 'docs/signing-api.md; the webhook client has 20 workers, and two relays may overlap',
    needs: ['issued'],
    async run(world) {
      const { concurrent } = world.options;
      const body = JSON.stringify(ask(await world.question()).object);
      const call = { method: 'POST', path: '/sign', body };
      const answers = await Promise.all(Array.from({ length: concurrent }, () => world.deliver(call)));
      const busy = answers.filter(({ status }) => status === 503 || status === 429);
      const last = await world.sign(body);
      const rest = [...answers.filter((answer) => !busy.includes(answer)), last];
      const certificates = new Set(rest.map(({ json }) => certificateField(json)));
      return {
        problems: [
          ...new Set(rest.flatMap(notIssued)),
          ...unless(certificates.size === 1, `${certificates.size} different certificates`),
        ],
        note: `${concurrent} simultaneous deliveries: ${busy.length} answered 503`,
      };
    },
  },
  {
    id: 'uid-reuse',
    rule: 'a used UID with other content is refused (422, UidReused); the refusal discloses nothing of the first request, which keeps its certificate',
    source: 'docs/signing-api.md, Refusal codes; a caller could otherwise fetch the certificates of other requesters',
    needs: ['issued'],
    async run(world) {
      const [first] = await world.issuances();
      if (first === undefined) return { skipped: 'nothing was issued' };
      const { object, question, answer } = first;
      const certificate = certificateField(answer.json) ?? '';
      const secrets = [certificate, ...(certificate === '' ? [] : namesOfCertificate(answer))];
      const { metadata, spec } = object;
      const another = ask(world.questionFor(question.signerName));
      const others = {
        'another key': { ...object, spec: { ...spec, request: ask(question).object.spec.request } },
        'another name': { ...another.object, metadata },
        'another requester': { ...object, spec: { ...spec, username: 'mallory' } },
        'another lifetime': { ...object, spec: { ...spec, expirationSeconds: 1_200 } },
        'more groups': { ...object, spec: { ...spec, groups: [...question.groups, 'system:masters'] } },
      };
      const problems: string[] = [];
      for (const [what, other] of Object.entries(others)) {
        const refused = await world.sign(other);
        const reasons = causesOf(refused.json).map(({ reason }) => reason);
        problems.push(
          ...at(what, [
            ...unless(refused.status === 422, `answered ${refused.status}`),
            ...unless(refused.status !== 422 || reasons.includes('UidReused'), `refused for ${reasons.join(', ')}`),
            ...unless(!secrets.some((secret) => refused.text.includes(secret)), 'the first certificate is disclosed'),
          ]),
        );
      }
      return { problems: [...problems, ...at('the first, again', notSame(await world.sign(object), certificate))] };
    },
  },
];

function notSame(answer: Answer, expected: string | undefined): readonly string[] {
  const problems = notIssued(answer);
  if (problems.length > 0) return problems;
  return unless(certificateField(answer.json) === expected, 'another certificate');
}

/** Texts by which an answer could identify a certificate. */
function namesOfCertificate(answer: Answer): readonly string[] {
  try {
    const { serialNumber, fingerprint256 } = chainOf(answer)[0];
    return [serialNumber, serialNumber.toLowerCase(), fingerprint256, fingerprint256.replaceAll(':', '').toLowerCase()];
  } catch {
    return [];
  }
}
