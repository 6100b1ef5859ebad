/**
 * The metadata service of this EC2 instance, version 2 only: every GET carries a token that a PUT returned. An attacker who
 * can make a proxy send only GET requests cannot read it.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
 */
import { request } from 'node:http';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import type { WholeAnswer } from '../http/exchange.ts';

export interface Imds {
  /** The text at `/latest/<path>`; undefined if the path does not exist. Throws if the service does not answer. */
  read(path: string): Promise<string | undefined>;
}

export interface ImdsOptions {
  /** AWS_EC2_METADATA_SERVICE_ENDPOINT, as in the AWS SDKs: for IPv6-only subnets and tests. */
  readonly endpoint?: string | undefined;
  readonly timeoutMilliseconds?: number;
}

const linkLocal = 'http://169.254.169.254';
/** For one answer, which comes from the instance's own host. */
const answerMilliseconds = 2_000;
/** The service throttles, and is slow in an instance's first seconds. */
const attempts = 3;
const maxBytes = 65_536;
/** Longer than one run of the program. */
const tokenSeconds = 300;

export function connectImds({
  endpoint = linkLocal,
  timeoutMilliseconds = answerMilliseconds,
}: ImdsOptions = {}): Imds {
  const base = new URL(endpoint);
  let token: Promise<string> | undefined;

  async function callWithRetries(method: 'PUT' | 'GET', path: string, headers: Readonly<Record<string, string>>) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await call(base, method, `/latest/${path}`, headers, timeoutMilliseconds);
        if (answer.status < 500 && answer.status !== 429) return answer;
        throw new Error(`the metadata service answers with status ${answer.status}`);
      } catch (error) {
        if (attempt === attempts) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
    }
  }

  async function newToken(): Promise<string> {
    const headers = { 'x-aws-ec2-metadata-token-ttl-seconds': String(tokenSeconds) };
    const { status, body } = await callWithRetries('PUT', 'api/token', headers);
    if (status === 403) throw new Error('the metadata service is switched off (httpEndpoint: disabled)');
    if (status !== 200) throw new Error(`the metadata service gives no token: status ${status}`);
    return body.toString('utf8');
  }

  return {
    async read(path) {
      token ??= newToken();
      const { status, body } = await callWithRetries('GET', path, { 'x-aws-ec2-metadata-token': await token });
      if (status === 200) return body.toString('utf8');
      if (status === 404) return undefined;
      throw new Error(`the metadata service answers ${path} with status ${status}`);
    },
  };
}

async function call(
  base: URL,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  timeoutMilliseconds: number,
): Promise<WholeAnswer> {
  const outgoing = {
    // No proxy, even if the environment names one: a proxy would call the metadata service of another machine.
    agent: false,
    method,
    host: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port === '' ? 80 : base.port,
    path,
    headers: { ...headers, ...(method === 'PUT' ? { 'content-length': 0 } : {}) },
  };
  try {
    const read = wholeAnswer(maxBytes);
    return await exchange({ timeoutMilliseconds, send: () => request(outgoing).end(), read });
  } catch (cause) {
    // A pod behind more hops than the instance's hop limit gets no answer at all.
    throw new Error('the metadata service cannot be reached', { cause });
  }
}
