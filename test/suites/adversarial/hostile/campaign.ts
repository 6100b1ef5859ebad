/** Runs hostile cases through a pool, judges every answer, and gathers what is wrong by name. */
import type { HostileCase } from '../../../corpus/hostile/case.ts';
import { approvedObject, signEvent } from '../../../corpus/hostile/event.ts';
import type { FromWorker, Plant, ToWorker } from './messages.ts';
import type { Job, Pool, Report } from './pool.ts';
import { objections } from './second-opinion.ts';
import { judge } from './verdict.ts';

export interface Summary {
  cases: number;
  /** Of those with request text: how far it got. */
  requests: number;
  pastPem: number;
  pastSignature: number;
  issued: number;
  readonly endings: Map<string, number>;
  readonly failures: Failure[];
  /** By processor time in the worker, the slowest first. */
  slowest: readonly { readonly id: string; readonly milliseconds: number }[];
}

export interface Failure {
  readonly id: string;
  readonly faults: readonly string[];
  /** What was sent, to try it again with. */
  readonly sent: string;
}

export interface PlantedCase extends HostileCase {
  readonly plant?: Plant;
}

let uids = 0;

export async function runCases(pool: Pool, cases: Iterable<PlantedCase>): Promise<Summary> {
  const summary: Summary = {
    cases: 0,
    requests: 0,
    pastPem: 0,
    pastSignature: 0,
    issued: 0,
    endings: new Map(),
    failures: [],
    slowest: [],
  };
  await pool.run(jobsOf(cases), (about, report, sent) => record(summary, about, report, sent, pool.caCertificate));
  return summary;
}

function* jobsOf(cases: Iterable<PlantedCase>): Generator<Job<PlantedCase>> {
  for (const about of cases) yield { about, message: () => messageOf(about) };
}

function messageOf({ input, plant }: PlantedCase): ToWorker {
  const made = input();
  const planted = plant === undefined ? {} : { plant };
  if ('event' in made) return { event: made.event, ...planted };
  // Every case is a request of its own: an answer from the record would prove nothing.
  const object = approvedObject({ uid: `hostile-${++uids}`, ...made });
  return { event: signEvent(object), request: made.request, ...planted };
}

function record(summary: Summary, about: PlantedCase, report: Report, sent: ToWorker, ca: string): void {
  const { ending, faults } = judge(report);
  const found = [...faults];
  summary.cases++;
  summary.endings.set(ending ?? 'fault', (summary.endings.get(ending ?? 'fault') ?? 0) + 1);
  if (sent.request !== undefined) summary.requests++;
  if (report.end === 'answered') {
    const { answer } = report;
    if (answer.pastPem) summary.pastPem++;
    if (answer.pastSignature) summary.pastSignature++;
    summary.slowest = [...summary.slowest, { id: about.id, milliseconds: answer.cpuMilliseconds }]
      .toSorted((a, b) => b.milliseconds - a.milliseconds)
      .slice(0, 5);
    if (ending === 'issued') {
      summary.issued++;
      found.push(...faultsOfIssued(answer, sent, ca));
    }
  }
  if (found.length === 0 && (ending === undefined || !about.expected.includes(ending)))
    found.push(`${describe(report, ending)}, expected ${about.expected.join(' or ')}`);
  if (found.length > 0) summary.failures.push({ id: about.id, faults: found, sent: exactly(sent) });
}

/** The object sent must come back with nothing but the certificate added, and the certificate must be its own. */
function faultsOfIssued({ body }: FromWorker, { event }: ToWorker, ca: string): readonly string[] {
  const answered = JSON.parse(body) as { spec: { request: string }; status: { certificate?: string } };
  const { request } = answered.spec;
  const certificate = Buffer.from(answered.status.certificate ?? '', 'base64').toString('utf8');
  delete answered.status.certificate;
  const sent = JSON.parse(bodyText(event)) as { status: { certificate?: unknown } };
  // `"certificate": ""` and null mean none.
  delete sent.status.certificate;
  const echo = JSON.stringify(sent) === JSON.stringify(answered) ? [] : ['the object came back changed'];
  return [...echo, ...objections(Buffer.from(request, 'base64'), certificate, ca)];
}

function bodyText({ body = '', isBase64Encoded }: ToWorker['event']): string {
  // A lone surrogate has no UTF-8: what the handler reads is the replacement.
  return Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8').toString('utf8');
}

function describe(report: Report, ending: string | undefined): string {
  if (report.end !== 'answered') return report.end;
  const { status, body } = report.answer;
  const message = /"message":"((?:[^"\\]|\\.){0,200})/.exec(body)?.[1] ?? '';
  return `${ending ?? 'no ending'} (${status}${message === '' ? '' : `, ${message}`})`;
}

/** Base64 of the request text, or the start of the event. */
function exactly({ request, event }: ToWorker): string {
  if (request !== undefined) return `base64 ${Buffer.from(request).toString('base64').slice(0, 6_000)}`;
  return JSON.stringify(event).slice(0, 1_000);
}

export function inWords(title: string, summary: Summary): string {
  const { cases, requests, pastPem, pastSignature, issued, endings, slowest } = summary;
  const share = (count: number) => (requests === 0 ? '' : ` (${Math.round((100 * count) / requests)} %)`);
  return [
    `${title}: ${cases} cases, ${issued} issued; of ${requests} requests ${pastPem} past PEM${share(pastPem)}, ${pastSignature} past the signature${share(pastSignature)}`,
    `  ${[...endings]
      .toSorted(([, a], [, b]) => b - a)
      .map(([ending, count]) => `${ending} ${count}`)
      .join(', ')}`,
    `  slowest: ${slowest.map(({ id, milliseconds }) => `${id} ${Math.round(milliseconds)} ms`).join(', ')}`,
  ].join('\n');
}

export function failuresInWords({ failures }: Summary): string {
  return failures.map(({ id, faults, sent }) => `${id}: ${faults.join('; ')}\n    ${sent}`).join('\n');
}
