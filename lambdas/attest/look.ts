/**
 * The two ways in which attest is told to look for machines that no longer exist: by its schedule, and by a caller who names nodes whose
 * objects were deleted. core/attestation/retirement/ decides; neither way can retire a machine that its platform does not report as
 * terminated. docs/attestation.md, Machines that end.
 */
import { decodeBody } from '../../core/encoding/json-body.ts';
import { isObject } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { mostHints, retireGone } from '../../core/attestation/retirement/retire-gone.ts';
import type {
  RetirementPorts,
  RetirementReport,
  RetirementScope,
} from '../../core/attestation/retirement/retire-gone.ts';
import { scheduledLook } from '../../core/attestation/retirement/schedule.ts';
import type { ScheduledLook } from '../../core/attestation/retirement/schedule.ts';
import { lookedAnswer, signAnswer } from '../../adapters/lambda/answers.ts';
import { busyAfter } from '../../adapters/lambda/log.ts';
import type { Answered, CallLogEntry } from '../../adapters/lambda/log.ts';

const { countersign: kind } = scheduledLook;

/** What a scheduled look answers; its log line has the rest. */
export interface LookAnswer {
  readonly countersign: ScheduledLook['countersign'];
  /** As in the header `x-countersign-outcome`. */
  readonly outcome: string;
}

export function lookAnswer(outcome: string): LookAnswer {
  return { countersign: kind, outcome };
}

/**
 * Whether this is the event of the schedule, exactly. An HTTP event has other keys, which API Gateway and Lambda write, so no caller of
 * a front door can send it: only a principal with `lambda:InvokeFunction`.
 */
export function isScheduledLook(event: unknown): event is ScheduledLook {
  return isObject(event) && event['countersign'] === kind && Object.keys(event).length === 1;
}

/** Room for 20 names with JSON escapes. */
const maxHintBytes = 32_768;
/** A DNS subdomain (RFC 1123), as the names of all Node objects. */
const nodeNamePattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** `{"nodeNames": […]}` with 1 to 20 names of nodes, and nothing else. */
export function decodeHint(bytes: Uint8Array): Result<readonly string[], string> {
  if (bytes.length > maxHintBytes) return failure(`body is larger than ${maxHintBytes} bytes`);
  const body = decodeBody(bytes, maxHintBytes);
  if (!body.ok) return failure(body.problem.message);
  if (!isObject(body.value)) return failure('body is not a JSON object');
  const { nodeNames, ...others } = body.value;
  if (Object.keys(others).length > 0) return failure('body has keys other than nodeNames');
  if (!Array.isArray(nodeNames)) return failure('nodeNames is not a list');
  const names: readonly unknown[] = nodeNames;
  if (names.length === 0 || names.length > mostHints) return failure(`nodeNames must have 1 to ${mostHints} names`);
  return names.every(isNodeName) ? success(names) : failure('nodeNames has an entry that is not the name of a node');
}

function isNodeName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && nodeNamePattern.test(value);
}

/** Looks, and says how it ended. Temporary failures are `busy`: the schedule looks again. Never rejects. */
export async function look(
  ports: () => Promise<RetirementPorts>,
  scope: RetirementScope,
  cluster: string,
  randomBytes: (count: number) => Uint8Array,
): Promise<Answered> {
  const fields = { cluster, look: scope === 'scheduled' ? 'scheduled' : 'hint' } as const;
  try {
    const report = await retireGone(await ports(), scope);
    const [failed] = report.failures;
    const found = { ...fields, ...reported(report) };
    return failed === undefined ? [lookedAnswer(), found] : busy(worst(report, randomBytes), found);
  } catch (error) {
    return busy({ outcome: busyAfter(error, randomBytes), error }, fields);
  }
}

type Busy = ReturnType<typeof worst>;

function busy({ outcome, error }: Busy, fields: Partial<CallLogEntry>): Answered {
  return [signAnswer(outcome, undefined), { ...fields, why: outcome.why, error }];
}

/** The failure that an operator must correct, if there is one among them. */
function worst({ failures }: RetirementReport, randomBytes: (count: number) => Uint8Array) {
  // A platform with several accounts and regions reports all that could not be read as one error.
  const errors = failures.flatMap(({ error }): unknown[] => (error instanceof AggregateError ? error.errors : [error]));
  const each = errors.map((error) => ({ outcome: busyAfter(error, randomBytes), error }));
  const [first] = each;
  if (first === undefined) throw new RangeError('nothing failed');
  return each.find(({ outcome }) => outcome.why === 'Internal') ?? first;
}

/** Names in one line, so that a line stays below the 256 KiB of CloudWatch. The audit items have all of them. */
const mostLogged = 100;

/** Counts, and the names of machines: no evidence is read here. */
function reported({ retired, failures, cutShort, ...counts }: RetirementReport): Partial<CallLogEntry> {
  const named = retired.slice(0, mostLogged).map(({ identity, nodeName }) => ({ identity, nodeName }));
  return {
    ...counts,
    // Absent if it is none: a metric counts the lines that have it (lib/observability/log-metrics.ts).
    ...(retired.length === 0 ? {} : { retired: retired.length, retiredMachines: named }),
    ...(failures.length === 0 ? {} : { failed: failures.slice(0, mostLogged).map(({ about }) => about) }),
    ...(cutShort ? { cutShort } : {}),
  };
}
