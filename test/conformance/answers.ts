/** Reads the answers of an endpoint without assuming anything about their form. */
import { X509Certificate } from 'node:crypto';

export interface Answer {
  /** For reports: `POST /sign`. */
  readonly call: string;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
  /** `undefined` when the body is not JSON. */
  readonly json: unknown;
  readonly reusedConnection: boolean | undefined;
  /** Created by API Gateway, a Function URL or a load balancer: rules about answers of the endpoint do not apply to it. */
  readonly byFrontDoor: boolean;
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Any JSON value as an object; a value that is not an object has no fields. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export interface Cause {
  readonly reason: unknown;
  readonly message: unknown;
}

/** `details.causes` of a Status. */
export function causesOf(json: unknown): readonly Cause[] {
  const causes = record(record(json)['details'])['causes'];
  return Array.isArray(causes)
    ? causes.map((cause) => ({ reason: record(cause)['reason'], message: record(cause)['message'] }))
    : [];
}

/** The unchanged `status.certificate` of an answer; `undefined` if it has none. */
export function certificateField(json: unknown): string | undefined {
  const field = record(record(json)['status'])['certificate'];
  return typeof field === 'string' ? field : undefined;
}

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** Every certificate in a PEM text; one that cannot be parsed throws. */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  return (pem.match(block) ?? []).map((each) => new X509Certificate(each));
}

/** The chain of an issued answer, leaf first. Check `pem` must have passed. */
export function chainOf({ json }: Answer): readonly [X509Certificate, ...X509Certificate[]] {
  const [leaf, ...more] = certificatesIn(Buffer.from(certificateField(json) ?? '', 'base64').toString('utf8'));
  if (leaf === undefined) throw new Error('no certificate in the answer');
  return [leaf, ...more];
}

/** An unexpected answer in one line: its status and its message. */
export function statusAndMessage({ status, json, text }: Answer): string {
  const { message, Message } = record(json);
  const reason = typeof message === 'string' ? message : typeof Message === 'string' ? Message : text;
  return `answered ${status}${reason === '' ? '' : `: ${reason.replaceAll(/\s+/g, ' ').slice(0, 160)}`}`;
}
