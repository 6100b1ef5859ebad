/** The log line of a call: names and codes, never a request's content, a certificate, a token or evidence. */
import { CertificateUnreadableError } from '../../core/x509/read-certificate.ts';
import type { BusyWhy, IgnoredWhy, RefusalCode, SignOutcome } from '../../core/outcome/outcome.ts';
import { named } from '../../core/outcome/trouble.ts';
import type { NamedTrouble, Trouble } from '../../core/outcome/trouble.ts';
import { CertificateDefectError, LaterError, MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import type { HttpAnswer } from './http.ts';
import { objectOf } from '../../core/encoding/json-object.ts';

export const logLevels = ['info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** The level in an environment variable; undefined if it is not a level. Unset and empty are `info`. */
export function readLogLevel(text: string | undefined): LogLevel | undefined {
  return text === undefined || text === '' ? 'info' : logLevels.find((known) => known === text);
}

/** One JSON line each, as pino writes them: the metric filters of the alarms read `alarm`. */
export function writeLog(lowest: LogLevel): (entry: CallLogEntry) => void {
  return (entry) => {
    if (logLevels.indexOf(entry.level) < logLevels.indexOf(lowest)) return;
    process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
  };
}

/** An answer, and what the log says about it. */
export type Answered = readonly [HttpAnswer, Partial<CallLogEntry>];

export interface CallLogEntry extends Partial<NamedTrouble> {
  /** `error` is for faults that an operator must correct. A refusal is `info`. */
  readonly level: LogLevel;
  readonly outcome: string;
  readonly status: number;
  readonly durationMilliseconds: number;
  /** For calls that reached no cluster. */
  readonly path?: string;
  readonly cluster?: string;
  /** The id of the request in all logs and records: `metadata.uid` of its CertificateSigningRequest. */
  readonly uid?: string;
  readonly name?: string;
  readonly signerName?: string;
  readonly codes?: readonly RefusalCode[];
  readonly why?: IgnoredWhy | BusyWhy;
  readonly serial?: string;
  /** CloudTrail's `requestID` of the KMS call that made the signature. */
  readonly kmsRequestId?: string | undefined;
  /** This invocation, as Lambda's own lines name it. */
  readonly lambdaRequestId?: string | undefined;
  /** The decision of attest. */
  readonly decision?: string;
  readonly identity?: string;
  /** Version of the evidence that proved it: `aws/v2`. */
  readonly evidence?: string;
  /** Audit mode: what would have been refused, or that it could not be judged. */
  readonly wouldRefuse?: readonly RefusalCode[] | 'unjudged';
  /** The same answer was given before. */
  readonly repeat?: boolean;
  /** A look for terminated machines: by the schedule of attest, or about nodes that a caller named. */
  readonly look?: 'scheduled' | 'hint';
  /** Of such a look: counts as in RetirementReport. */
  readonly looked?: number;
  readonly marked?: number;
  readonly unmarked?: number;
  readonly changed?: number;
  readonly retired?: number;
  readonly cutShort?: boolean;
  /** The machines that were retired; `retired` counts also those that one line has no room for. */
  readonly retiredMachines?: readonly { readonly identity: string; readonly nodeName: string }[];
  /** The providers, machines and nodes that the look could not finish. */
  readonly failed?: readonly string[];
  /** A refused caller: the ARN of the session or user, or the service account. */
  readonly caller?: string;
  /** The same without the session name, to count by. */
  readonly callerPrincipal?: string;
  readonly error?: unknown;
}

export function logEntry(answer: HttpAnswer, durationMilliseconds: number, more: Partial<CallLogEntry>): CallLogEntry {
  const { error, ...rest } = more;
  const trouble = troubleOf(more);
  return {
    level:
      more.why === 'Internal' ? 'error' : more.why === 'Unavailable' || more.caller !== undefined ? 'warn' : 'info',
    outcome: answer.headers['x-countersign-outcome'] ?? '',
    status: answer.statusCode,
    durationMilliseconds,
    ...rest,
    ...(trouble === undefined ? {} : named(trouble)),
    ...(error === undefined ? {} : { error: describe(error, more.why === 'Internal') }),
  };
}

/** The first code is the reason of a refusal (core/outcome/outcome.ts). */
function troubleOf({ caller, codes, why, look }: Partial<CallLogEntry>): Trouble | undefined {
  if (caller !== undefined) return 'callers-refused';
  // One run that fails needs no operator: the next one is ten minutes later.
  if (look === 'scheduled' && (why === 'Unavailable' || why === 'Throttled')) return 'retirement-fails';
  const [code] = codes ?? [];
  if (code !== undefined) return `refused-${code}`;
  return why === undefined ? undefined : troublesWhy[why];
}

const troublesWhy: Readonly<Partial<Record<IgnoredWhy | BusyWhy, Trouble>>> = {
  Internal: 'internal',
  Unavailable: 'unavailable',
  Throttled: 'throttled',
};

/** Text of adapters and libraries is bounded: an SDK's message may be a page long. */
function describe(error: unknown, withStack: boolean): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack, cause } = error;
  return {
    name,
    message: message.slice(0, 300),
    ...(cause instanceof Error ? { cause: `${cause.name}: ${cause.message}`.slice(0, 300) } : {}),
    ...awsRequest(error),
    ...awsRequest(cause),
    ...(withStack ? { stack: stack?.split('\n').slice(1, 8).join('\n') } : {}),
  };
}

/** The request that AWS refused or failed, as CloudTrail names it. */
function awsRequest(error: unknown): { readonly awsRequestId?: string } {
  const { requestId } = objectOf(objectOf(error)['$metadata']);
  return typeof requestId === 'string' ? { awsRequestId: requestId.slice(0, 100) } : {};
}

/** The names of the request, if the JSON has them. `json` may be any value. */
export function requestNames(json: unknown): Partial<CallLogEntry> {
  const { metadata, spec } = objectOf(json);
  const names = {
    uid: objectOf(metadata)['uid'],
    name: objectOf(metadata)['name'],
    signerName: objectOf(spec)['signerName'],
  };
  return Object.fromEntries(
    Object.entries(names).filter(([, value]) => typeof value === 'string' && /^[A-Za-z0-9./_:-]{1,571}$/.test(value)),
  );
}

/** Classifies what was thrown: throttled, temporary, or a fault of this service that must raise an alarm. */
export function busyAfter(
  error: unknown,
  randomBytes: (count: number) => Uint8Array,
): SignOutcome & { readonly kind: 'busy' } {
  // The relay adds its own jitter.
  if (error instanceof LaterError)
    return { kind: 'busy', why: error.why, retryAfterSeconds: Math.max(1, Math.ceil(error.afterMilliseconds / 1_000)) };
  const why = error instanceof ThrottledError ? 'Throttled' : isOurFault(error) ? 'Internal' : 'Unavailable';
  // A quota counts per second, and the relay's concurrency limiter finds out how many calls it permits. After other failures
  // the delay is random, so that the callers that failed together do not all retry together.
  const jitter = why === 'Throttled' ? 0 : (randomBytes(1)[0] ?? 0) % 4;
  return { kind: 'busy', why, retryAfterSeconds: 1 + jitter };
}

function isOurFault(error: unknown): boolean {
  return (
    error instanceof CertificateDefectError ||
    error instanceof CertificateUnreadableError ||
    error instanceof MisconfigurationError ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError
  );
}
