/**
 * HTTP calls as Lambda delivers them: payload format 2.0, the same from an HTTP API and a function URL.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
 */
import { objectOf } from '../../core/encoding/json-object.ts';

/**
 * The part of the event that is read. `requestContext` is written by AWS, the rest by the caller. A principal with
 * `lambda:InvokeFunction` can write all of it.
 */
export interface HttpEvent {
  readonly version: '2.0';
  /** Without the query string. The stage is `$default`, so the path has no stage name. */
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly requestContext: {
    readonly http: { readonly method: string; readonly path: string };
    readonly requestId?: string;
    /** The caller, as the front door names it (adapters/lambda/caller.ts). */
    readonly authorizer?: unknown;
  };
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}

export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** `body` is the base64 of bytes. */
  readonly isBase64Encoded?: true;
}

/** From the Lambda runtime. No caller can change it. */
export interface LambdaContext {
  readonly invokedFunctionArn: string;
  /** Of this invocation, as in Lambda's own lines of the log. */
  readonly awsRequestId?: string;
}

/** Lambda always passes a context; the dev server passes no context. */
export type HttpHandler = (event: HttpEvent, context?: LambdaContext) => Promise<HttpAnswer>;

/** The event as payload format 2.0; undefined for anything else, such as an event that a principal invokes the function with. */
export function readHttpEvent(event: unknown): HttpEvent | undefined {
  const { rawPath, headers, requestContext, body, isBase64Encoded } = objectOf(event);
  const { method } = objectOf(objectOf(requestContext)['http']);
  if (typeof rawPath !== 'string' || typeof method !== 'string' || typeof headers !== 'object' || headers === null)
    return undefined;
  if (body !== undefined && body !== null && typeof body !== 'string') return undefined;
  if (typeof isBase64Encoded !== 'boolean') return undefined;
  if (!Object.values(headers).every((value) => value === undefined || typeof value === 'string')) return undefined;
  return event as HttpEvent;
}

/** An HTTP request, as handlers read it. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

/** The query string is ignored: the webhook client adds its own timeout, `?timeout=30s`. */
export function decodeEvent(event: HttpEvent): HttpRequest {
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(event.headers)) {
    if (value === undefined) continue;
    const key = name.toLowerCase();
    const earlier = headers.get(key);
    // AWS joins repeated headers in this way too. The first or last value alone might be one that a proxy did not check.
    headers.set(key, earlier === undefined ? value : `${earlier},${value}`);
  }
  return {
    method: event.requestContext.http.method,
    path: event.rawPath,
    headers,
    body: Buffer.from(event.body ?? '', event.isBase64Encoded ? 'base64' : 'utf8'),
  };
}

/** No cache between the function and the caller may keep an answer: refusals and CA sets change. */
const commonHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

export function jsonAnswer(
  statusCode: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return textAnswer(statusCode, 'application/json', JSON.stringify(body), headers);
}

export function textAnswer(
  statusCode: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return { statusCode, headers: { 'content-type': contentType, ...commonHeaders, ...headers }, body };
}

export function bytesAnswer(
  statusCode: number,
  contentType: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  const base64 = Buffer.from(body).toString('base64');
  return { ...textAnswer(statusCode, contentType, base64, headers), isBase64Encoded: true };
}
