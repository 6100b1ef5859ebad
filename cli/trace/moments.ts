/** The timeline of one request: what each log and record says happened, and when. */
import { isObject, objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import type { AuditItem, Verdict } from '../../core/ports/attestation-store.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import type { Instant } from '../../core/ports/instant.ts';

/** What tells about a moment: a log, an object of the cluster, a record. */
export type Source = 'cluster' | 'event' | 'relay' | 'attest' | 'sign' | 'verdict' | 'ledger' | 'audit';

export type Detail = string | number | boolean | readonly string[];

export interface Moment {
  readonly at: Instant;
  readonly source: Source;
  readonly what: string;
  readonly details: Readonly<Record<string, Detail>>;
}

/** Of one time: in the order in which a request passes the parts. The API server's times are whole seconds. */
const order: readonly Source[] = ['audit', 'cluster', 'event', 'relay', 'verdict', 'attest', 'ledger', 'sign'];

export function sorted(moments: readonly Moment[]): readonly Moment[] {
  return moments.toSorted((a, b) => a.at - b.at || order.indexOf(a.source) - order.indexOf(b.source));
}

/** Longer texts of a log are cut: they hold names that requesters choose. */
const longestText = 500;
const mostTexts = 20;

/** The fields of a line that may be shown. A log holds no secrets; a list keeps it so if another program writes lines. */
const functionFields = [
  'name',
  'outcome',
  'decision',
  'why',
  'codes',
  'wouldRefuse',
  'identity',
  'evidence',
  'serial',
  'repeat',
  'kmsRequestId',
  'lambdaRequestId',
  'status',
  'durationMilliseconds',
] as const;
const relayFields = ['name', 'decision', 'code', 'codes', 'end', 'cause', 'detail', 'failures', 'delay'] as const;
const errorFields = ['name', 'message', 'cause', 'awsRequestId'] as const;

/** Undefined for a line about another request. */
export function functionMoment(source: 'attest' | 'sign', at: Instant, text: string, uid: string): Moment | undefined {
  const line = parsedObject(text);
  if (line?.['uid'] !== uid) return undefined;
  const error = Object.entries(chosen(objectOf(line['error']), errorFields));
  const details = { ...chosen(line, functionFields), ...Object.fromEntries(error.map(([k, v]) => [`error.${k}`, v])) };
  return { at: timeOf(line['time']) ?? at, source, what: 'answered', details };
}

/** A line of Lambda itself about an invocation that wrote no line: it crashed or ran out of time. */
export function invocationMoment(source: 'attest' | 'sign', at: Instant, text: string): Moment | undefined {
  if (!/Task timed out|Runtime exited|Error/.test(text)) return undefined;
  return { at, source, what: 'the invocation ended without an answer', details: { line: text.slice(0, longestText) } };
}

/** `pod`: namespace and name. Undefined for a line about another request. */
export function relayMoment(text: string, uid: string, pod: string): Moment | undefined {
  if (!text.includes(uid)) return undefined;
  const line = parsedObject(text);
  const at = timeOf(line?.['time']);
  const { msg: message } = line ?? {};
  if (line?.['uid'] !== uid || at === undefined || typeof message !== 'string') return undefined;
  return { at, source: 'relay', what: message.slice(0, longestText), details: { ...chosen(line, relayFields), pod } };
}

export function verdictMoment({ decidedAt: at, decision, mode, violations, annotations, identity }: Verdict): Moment {
  const details = {
    mode,
    ...(identity === undefined ? {} : { identity }),
    ...(violations === undefined
      ? {}
      : {
          codes: violations.map(({ code }) => code),
          message: violations
            .map(({ message }) => message)
            .join('; ')
            .slice(0, longestText),
        }),
    ...chosen(annotations, ['countersign.dev/evidence', 'countersign.dev/machine']),
  };
  return { at, source: 'verdict', what: `stored: ${decision}`, details };
}

export function recordMoment({ openedAt: at, attempt, serial, state }: IssuingRecord): Moment {
  return { at, source: 'ledger', what: 'intent written', details: { serial, attempts: attempt, now: state } };
}

export function auditMoment({ at, action, subject, by, reason, id }: AuditItem): Moment {
  return { at, source: 'audit', what: action, details: { subject, by, reason, id } };
}

/** From the object of the API server: created, decided, certificate written. */
export function objectMoments(object: JsonObject): readonly Moment[] {
  const { metadata, spec, status } = object;
  const { creationTimestamp, managedFields } = objectOf(metadata);
  const of = (time: unknown, what: string, details: Moment['details']): readonly Moment[] => {
    const at = timeOf(time);
    return at === undefined ? [] : [{ at, source: 'cluster', what, details }];
  };
  return [
    ...of(creationTimestamp, 'created', chosen(objectOf(spec), ['username'])),
    ...objectsIn(objectOf(status)['conditions']).flatMap((condition) => {
      const { type, lastUpdateTime, lastTransitionTime } = condition;
      const what = typeof type === 'string' ? `condition ${type.slice(0, 80)}` : 'condition';
      return of(lastUpdateTime ?? lastTransitionTime, what, chosen(condition, ['reason', 'message']));
    }),
    ...objectsIn(managedFields).flatMap((entry) => {
      const { subresource, time, fieldsV1 } = entry;
      const wrote = subresource === 'status' && 'f:certificate' in objectOf(objectOf(fieldsV1)['f:status']);
      return wrote ? of(time, 'certificate written to the status', chosen(entry, ['manager'])) : [];
    }),
  ];
}

/** An Event about the request, as core/v1 shows it. */
export function eventMoment(event: JsonObject): Moment | undefined {
  const { eventTime, lastTimestamp, firstTimestamp, metadata, reason } = event;
  const at = timeOf(eventTime ?? lastTimestamp ?? firstTimestamp ?? objectOf(metadata)['creationTimestamp']);
  if (at === undefined) return undefined;
  const what = typeof reason === 'string' ? reason.slice(0, 128) : 'Event';
  const details = {
    ...chosen(objectOf(event['involvedObject']), ['name']),
    ...chosen(event, ['message', 'reportingComponent']),
  };
  return { at, source: 'event', what, details };
}

function chosen(from: JsonObject, names: readonly string[]): Record<string, Detail> {
  const entries = names.flatMap((name) => {
    const detail = detailOf(from[name]);
    return detail === undefined ? [] : [[name, detail] as const];
  });
  return Object.fromEntries(entries);
}

function detailOf(value: unknown): Detail | undefined {
  if (typeof value === 'string') return value.slice(0, longestText);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (!Array.isArray(value)) return undefined;
  return value
    .filter((each): each is string => typeof each === 'string')
    .slice(0, mostTexts)
    .map((each) => each.slice(0, 80));
}

/** RFC 3339 text, or a Date of the client library. */
function timeOf(value: unknown): Instant | undefined {
  const at = value instanceof Date ? value.getTime() : typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isFinite(at) ? at : undefined;
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
