/** CloudWatch Logs as far as FilterLogEvents: it checks signatures, finds by pattern, and answers in pages, also empty ones. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished, vi } from 'vitest';
import { verifySigV4 } from '../../../harness/aws/sigv4-verifier.ts';
import { matches } from '../../lib/filter-pattern.ts';

export interface LogEvent {
  readonly timestamp: number;
  readonly message: string;
}

export interface FakeLogs {
  /** Events by log group. */
  readonly groups: Map<string, LogEvent[]>;
  /** The bodies of the calls that were answered. */
  readonly calls: Readonly<Record<string, unknown>>[];
  /** What to answer instead, once for each: an error code. */
  readonly errors: string[];
  pageSize: number;
}

const secret = 'a secret of this test';
const known = new Set(['logGroupName', 'filterPattern', 'startTime', 'endTime', 'nextToken']);

/** Starts it, and logs the environment in to it. */
export async function startFakeLogs(): Promise<FakeLogs> {
  const fake: FakeLogs = { groups: new Map(), calls: [], errors: [], pageSize: 2 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const { method = '', url: target = '' } = request;
      const headers = request.headers as Record<string, string | undefined>;
      const verified = verifySigV4({ method, target, headers, body }, () => secret, Date.now());
      const answer = (status: number, value: object): void =>
        void response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(value));
      if (typeof verified === 'string' || verified.service !== 'logs')
        return answer(403, { __type: 'InvalidSignatureException', message: JSON.stringify(verified) });
      if (headers['x-amz-target'] !== 'Logs_20140328.FilterLogEvents')
        return answer(400, { __type: 'UnknownOperationException' });
      const [error] = fake.errors.splice(0, 1);
      if (error !== undefined)
        return answer(error === 'ServiceUnavailableException' ? 503 : 400, { __type: error, message: 'may not' });
      const input = JSON.parse(body.toString()) as Record<string, unknown>;
      fake.calls.push(input);
      return answer(...filter(input, fake));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    vi.unstubAllEnvs();
  });
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDTEST');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secret);
  vi.stubEnv('AWS_SESSION_TOKEN', '');
  vi.stubEnv('AWS_ENDPOINT_URL_CLOUDWATCH_LOGS', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return fake;
}

function filter(input: Record<string, unknown>, { groups, pageSize }: FakeLogs): [number, object] {
  const strange = Object.keys(input).filter((key) => !known.has(key));
  if (strange.length > 0) return [400, { __type: 'InvalidParameterException', message: strange.join() }];
  const events = groups.get(String(input['logGroupName']));
  if (events === undefined)
    return [400, { __type: 'ResourceNotFoundException', message: 'The specified log group does not exist.' }];
  const from = input['nextToken'] === undefined ? 0 : Number(input['nextToken']);
  const page = events.slice(from, from + pageSize).filter(({ timestamp, message }) => {
    const inTime = timestamp >= Number(input['startTime']) && timestamp <= Number(input['endTime']);
    return inTime && holds(String(input['filterPattern']), message);
  });
  const next = from + pageSize < events.length ? { nextToken: String(from + pageSize) } : {};
  return [200, { events: page.map((event) => ({ ...event, logStreamName: 's', eventId: '1' })), ...next }];
}

/** A term in quotes finds lines with this text, a pattern in braces only JSON. */
export function holds(pattern: string, message: string): boolean {
  const term = /^"([^"]+)"$/.exec(pattern)?.[1];
  if (term !== undefined) return message.includes(term);
  try {
    return matches(pattern, message);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
