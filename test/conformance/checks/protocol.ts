/** Versions, states, bodies and paths, as the webhook client and the relay need them. */
import { randomBytes } from 'node:crypto';
import { causesOf, certificateField, record } from '../answers.ts';
import { at, unless } from '../check.ts';
import type { Check } from '../check.ts';
import { ask } from '../questions.ts';
import type { ObjectChange } from '../questions.ts';
import type { Call } from '../world.ts';
import { notIssued } from '../certificate.ts';

/** Above the API server's limit for an object; API Gateway accepts 10 MB, Lambda 6 MB. */
const objectTooLarge = 1_572_864 + 1_024;
const requestTooLarge = 131_072 + 1_024;

export const protocolChecks: readonly Check[] = [
  {
    id: 'v1beta1',
    rule: 'a v1beta1 object is answered as v1beta1',
    source: 'docs/signing-api.md; the webhook client refuses an answer with another version than it sent',
    needs: ['issued'],
    async run(world) {
      const { object } = ask(await world.question());
      const apiVersion = 'certificates.k8s.io/v1beta1';
      const answer = await world.sign({ ...object, apiVersion });
      const problems = notIssued(answer);
      if (problems.length > 0) return { problems };
      const { apiVersion: answered, kind } = record(answer.json);
      return {
        problems: [
          ...unless(answered === apiVersion, `apiVersion is ${String(answered)}`),
          ...unless(kind === object.kind, `kind is ${String(kind)}`),
        ],
      };
    },
  },
  {
    id: 'timeout-query',
    rule: 'a query such as ?timeout=30s changes nothing',
    source: 'client-go adds it to every call of the webhook client (rest.Request.Timeout)',
    needs: ['issued'],
    async run(world) {
      const [first] = await world.issuances();
      if (first === undefined) return { skipped: 'nothing was issued' };
      const answer = await world.deliver({
        method: 'POST',
        path: '/sign?timeout=30s',
        body: JSON.stringify(first.object),
      });
      return { problems: notIssued(answer) };
    },
  },
  {
    id: 'ignored',
    rule: 'a request that is not approved, is denied, failed or issued, or is for another signer, is answered 409 and not signed',
    source: 'docs/signing-api.md; docs/signers.md, deviation 6: the API server would store a certificate nevertheless',
    async run(world) {
      const question = await world.question();
      const condition = (type: string): object => ({ type, status: 'True', reason: 'Conformance', message: '' });
      const cases: Readonly<Record<string, ObjectChange>> = {
        'not approved': { status: { conditions: [] } },
        denied: { status: { conditions: [condition('Denied')] } },
        'approved and denied': { status: { conditions: [condition('Approved'), condition('Denied')] } },
        'approved and failed': { status: { conditions: [condition('Approved'), condition('Failed')] } },
        'issued before': { status: { certificate: Buffer.from('a certificate').toString('base64') } },
        'another signer': { spec: { signerName: 'conformance.countersign.invalid/unknown' } },
      };
      const problems: string[] = [];
      for (const [what, change] of Object.entries(cases)) {
        const answer = await world.sign(ask(question, change).object);
        problems.push(
          ...at(what, [
            ...unless(answer.status === 409, `answered ${answer.status}`),
            ...unless(certificateField(answer.json) === undefined, 'the answer holds a certificate'),
          ]),
        );
      }
      return { problems, note: Object.keys(cases).join(', ') };
    },
  },
  {
    id: 'invalid',
    rule: 'an object that is not a CertificateSigningRequest is answered 400',
    source: 'docs/signing-api.md; such an answer never ends a request',
    async run(world) {
      const { object } = ask(await world.question());
      const { uid: _, ...withoutUid } = object.metadata;
      const cases: Readonly<Record<string, string>> = {
        'not JSON': '{"kind":',
        'no body': '',
        'an array': '[]',
        'another kind': JSON.stringify({ ...object, kind: 'Secret' }),
        'another apiVersion': JSON.stringify({ ...object, apiVersion: 'certificates.k8s.io/v2' }),
        'no UID': JSON.stringify({ ...object, metadata: withoutUid }),
        'no request': JSON.stringify({ ...object, spec: { ...object.spec, request: undefined } }),
        'a request that is not base64': JSON.stringify({ ...object, spec: { ...object.spec, request: '!' } }),
      };
      const problems: string[] = [];
      for (const [what, body] of Object.entries(cases)) {
        const { status } = await world.sign(body);
        problems.push(...at(what, unless(status === 400, `answered ${status}`)));
      }
      return { problems, note: Object.keys(cases).join(', ') };
    },
  },
  {
    id: 'too-large',
    rule: 'an object over 1.5 MiB and a request over 128 KiB are answered 413, RequestTooLarge',
    source: 'docs/signing-api.md; docs/signers.md, deviation 11',
    async run(world) {
      const question = await world.question();
      const cases: Readonly<Record<string, ObjectChange>> = {
        'the object': { metadata: { annotations: { large: 'x'.repeat(objectTooLarge) } } },
        'the request': { pem: 'x'.repeat(requestTooLarge) },
      };
      const problems: string[] = [];
      for (const [what, change] of Object.entries(cases)) {
        const answer = await world.sign(ask(question, change).object);
        const reasons = causesOf(answer.json).map(({ reason }) => reason);
        problems.push(
          ...at(what, [
            ...unless(answer.status === 413, `answered ${answer.status}`),
            ...unless(
              answer.status !== 413 || reasons.includes('RequestTooLarge'),
              'without the reason RequestTooLarge',
            ),
          ]),
        );
      }
      return { problems };
    },
  },
  {
    id: 'unknown-cluster',
    rule: 'the path of another cluster is answered 404, or 403 by an endpoint that checks callers by path',
    source: 'docs/signing-api.md',
    async run(world) {
      const unknown = `no-such-${randomBytes(4).toString('hex')}`;
      const body = JSON.stringify(ask(await world.question()).object);
      const calls: readonly Call[] = [
        { method: 'POST', path: `/../${unknown}/sign`, body, frontDoorMayAnswer: true },
        { path: `/../${unknown}/trust-bundle`, frontDoorMayAnswer: true },
      ];
      const problems: string[] = [];
      for (const call of calls) {
        const { status } = await world.deliver(call);
        problems.push(
          ...at(`${call.method ?? 'GET'} …/${unknown}`, unless(status === 404 || status === 403, `answered ${status}`)),
        );
      }
      return { problems };
    },
  },
  {
    id: 'wrong-method',
    rule: 'a method that the path does not have is answered 405 or 404, or 403 by an endpoint that checks callers by path',
    source: 'docs/signing-api.md; RFC 9110 §15.5.6',
    async run(world) {
      const calls: readonly Call[] = [
        { method: 'GET', path: '/sign' },
        { method: 'PUT', path: '/sign', body: JSON.stringify(ask(await world.question()).object) },
        { method: 'DELETE', path: '/sign' },
        { method: 'POST', path: '/trust-bundle', body: '{}' },
      ];
      const problems: string[] = [];
      for (const call of calls) {
        const { status, byFrontDoor } = await world.deliver({ ...call, frontDoorMayAnswer: true });
        const right = status === 405 || status === 404 || (status === 403 && byFrontDoor);
        problems.push(...at(`${call.method} ${call.path}`, unless(right, `answered ${status}`)));
      }
      return { problems };
    },
  },
];
