/**
 * The event with which sign invokes attest, without any field of HTTP. Its schema is closed, so that no event of a front door
 * can be taken for it. Only IAM restricts its senders (`lambda:InvokeFunction`).
 */
import { LaterError } from '../../core/ports/errors.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

const kind = 'attest/v1';

export interface AttestCall {
  readonly countersign: typeof kind;
  readonly cluster: string;
  /** A CertificateSigningRequest as received. */
  readonly request: JsonObject;
}

/** `outcome` as in the header `x-countersign-outcome`. Sign reads the verdict from the table. */
export interface AttestCallAnswer {
  readonly countersign: typeof kind;
  readonly outcome: string;
  /** Only if this request must wait (`busy`). Sign passes it on. */
  readonly later?: LaterAnswer;
}

export interface LaterAnswer {
  readonly why: LaterError['why'];
  readonly afterMilliseconds: number;
}

export function attestCall(cluster: string, request: JsonObject): AttestCall {
  return { countersign: kind, cluster, request };
}

export function attestCallAnswer(outcome: string, error?: unknown): AttestCallAnswer {
  if (!(error instanceof LaterError)) return { countersign: kind, outcome };
  const { why, afterMilliseconds } = error;
  return { countersign: kind, outcome, later: { why, afterMilliseconds } };
}

/** Undefined for any other event, also for one with an additional key. */
export function readAttestCall(event: unknown): AttestCall | undefined {
  if (typeof event !== 'object' || event === null) return undefined;
  const { countersign, cluster, request, ...others } = event as Readonly<Record<string, unknown>>;
  if (countersign !== kind || typeof cluster !== 'string' || Object.keys(others).length > 0) return undefined;
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return undefined;
  return { countersign, cluster, request: request as JsonObject };
}

/** Undefined for an answer of another function. */
export function readAttestCallAnswer(answer: unknown): AttestCallAnswer | undefined {
  const { countersign, outcome, later } = (answer ?? {}) as Readonly<Record<string, unknown>>;
  if (countersign !== kind || typeof outcome !== 'string') return undefined;
  return isLater(later) ? { countersign, outcome, later } : { countersign, outcome };
}

function isLater(later: unknown): later is LaterAnswer {
  const { why, afterMilliseconds } = (later ?? {}) as Readonly<Record<string, unknown>>;
  return (why === 'SecondLook' || why === 'Limited') && Number.isFinite(afterMilliseconds);
}
