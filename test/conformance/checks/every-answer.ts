/** Rules for every answer of the whole run and its connection: these checks come last. */
import { certificatesIn, record } from '../answers.ts';
import type { Answer } from '../answers.ts';
import { unless } from '../check.ts';
import type { Check, Finding } from '../check.ts';
import { ask } from '../questions.ts';
import type { World } from '../world.ts';

/** Checks every answer of the endpoint itself; a repeated problem is reported once, with its count. */
function every(world: World, look: (answer: Answer) => readonly string[]): Finding {
  const ours = world.answers.filter(({ byFrontDoor }) => !byFrontDoor);
  const counts = new Map<string, number>();
  for (const answer of ours)
    for (const problem of look(answer)) {
      const line = `${answer.call} ${answer.status}: ${problem}`;
      counts.set(line, (counts.get(line) ?? 0) + 1);
    }
  const others = world.answers.length - ours.length;
  return {
    problems: [...counts].map(([line, count]) => (count === 1 ? line : `${line} (${count} times)`)),
    note: `${ours.length} answers${others > 0 ? `, and ${others} of API Gateway or the Function URL, which are not checked` : ''}`,
  };
}

/** The outcome for each status of the protocol. Other checks report other statuses. */
const outcomes: Readonly<Record<number, string>> = {
  400: 'invalid',
  403: 'forbidden',
  404: 'invalid',
  405: 'invalid',
  409: 'ignored',
  413: 'refused',
  415: 'invalid',
  422: 'refused',
  503: 'busy',
};

export const everyAnswerChecks: readonly Check[] = [
  {
    id: 'keep-alive',
    rule: 'HTTP/1.1 connections stay open from call to call, after refusals too',
    source:
      'RFC 9112 §9.3; the relay and the webhook client make thousands of calls, each TLS handshake costs two round trips',
    async run(world) {
      const question = await world.question();
      const calls = [
        () => world.get('/healthz'),
        () => world.sign(ask(question, { spec: { usages: ['code signing'] } }).object),
        () => world.sign(ask(question, { status: { conditions: [] } }).object),
        () => world.get('/trust-bundle'),
      ];
      const reused: (boolean | undefined)[] = [];
      for (const call of calls) reused.push((await call()).reusedConnection);
      if (reused.includes(undefined)) return { skipped: 'this client does not report whether a connection was reused' };
      // The first of these calls may open a connection; the others must reuse it.
      const closed = reused.slice(1).filter((each) => each === false).length;
      return { problems: unless(closed === 0, `${closed} of ${calls.length - 1} calls needed a new connection`) };
    },
  },
  {
    id: 'outcome-header',
    rule: 'every answer has x-countersign-outcome, with the outcome that belongs to its status',
    source: 'docs/signing-api.md; the relay ends a request only on an answer that is the endpoint’s own',
    run: async (world) =>
      every(world, ({ status, call, headers }) => {
        const outcome = headers.get('x-countersign-outcome');
        if (outcome === null) return ['x-countersign-outcome is missing'];
        const expected = status === 200 ? (call.endsWith('/sign') ? 'issued' : 'ok') : outcomes[status];
        return unless(expected === undefined || outcome === expected, `x-countersign-outcome is ${outcome}`);
      }),
  },
  {
    id: 'error-shape',
    rule: 'every error is a Status (kind, code, message, reason) and has error.message, which is all that the webhook client shows',
    source: 'docs/signing-api.md; metav1.Status; google.rpc.Status',
    run: async (world) =>
      every(world, ({ status, json }) => {
        if (status < 400) return [];
        const { kind, apiVersion, status: failure, code, message, reason, error } = record(json);
        const hasText = (text: unknown): boolean => typeof text === 'string' && text !== '';
        return [
          ...unless(
            kind === 'Status' && apiVersion === 'v1' && failure === 'Failure',
            'it is not a Status with status Failure',
          ),
          ...unless(code === status, `its code is ${String(code)}`),
          ...unless(hasText(message) && hasText(reason), 'it has no message or no reason'),
          ...unless(hasText(message) && record(error)['message'] === message, 'error.message is not its message'),
          ...unless(record(error)['code'] === status, 'error.code is not its status'),
        ];
      }),
  },
  {
    id: 'no-retry-after',
    rule: 'no answer has a Retry-After header; a busy one has retryAfterSeconds in its body',
    source: 'docs/signing-api.md; with the header the webhook client calls up to 55 times in a row',
    async run(world) {
      const finding = every(world, ({ status, headers, json }) => {
        const after = headers.get('retry-after');
        const seconds = record(json)['retryAfterSeconds'];
        return [
          ...unless(after === null, `Retry-After: ${after}`),
          ...unless(status !== 503 || (typeof seconds === 'number' && seconds >= 0), 'no retryAfterSeconds'),
        ];
      });
      if ('skipped' in finding) return finding;
      const busy = world.answers.filter(({ status }) => status === 503).length;
      return { ...finding, note: busy === 0 ? 'no answer was 503' : `${busy} answers were 503` };
    },
  },
  {
    id: 'nothing-disclosed',
    rule: 'only a 200 answer holds a certificate, and no answer holds a private key',
    source: 'docs/signing-api.md',
    run: async (world) =>
      every(world, ({ status, text }) => [
        ...unless(!/PRIVATE KEY/.test(text), 'a private key'),
        ...unless(status === 200 || !holdsCertificate(text), 'a certificate'),
      ]),
  },
];

/** As text, or in base64 as in `status.certificate`. */
function holdsCertificate(text: string): boolean {
  return (
    text.includes('-----BEGIN CERT') || /LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS/.test(text) || certificatesIn(text).length > 0
  );
}
