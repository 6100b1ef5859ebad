/**
 * The metadata service of the EC2 instance we run on, version 2 only: every question carries a token that a PUT gave, so
 * a proxy or a page that can be made to fetch addresses for others gets nothing.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
 */
import { request } from 'node:http';

export interface Imds {
  /** Text below `/latest/`. Nothing where the service knows no such path. Throws when it does not answer. */
  read(path: string): Promise<string | undefined>;
}

export interface ImdsOptions {
  /** AWS_EC2_METADATA_SERVICE_ENDPOINT, as the AWS SDKs know it: IPv6-only subnets, and tests. */
  readonly endpoint?: string | undefined;
  readonly timeoutMilliseconds?: number;
}

const linkLocal = 'http://169.254.169.254';
/** One answer; the service is on the machine's own host. */
const answerMilliseconds = 2_000;
/** It throttles, and is slow in an instance's first seconds. */
const attempts = 3;
const maxBytes = 65_536;
/** We are done long before. */
const tokenSeconds = 300;

export function connectImds({
  endpoint = linkLocal,
  timeoutMilliseconds = answerMilliseconds,
}: ImdsOptions = {}): Imds {
  const base = new URL(endpoint);
  let token: Promise<string> | undefined;

  async function ask(method: 'PUT' | 'GET', path: string, headers: Readonly<Record<string, string>>) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await exchange(base, method, `/latest/${path}`, headers, timeoutMilliseconds);
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
    const { status, text } = await ask('PUT', 'api/token', headers);
    if (status === 403) throw new Error('the metadata service is switched off (httpEndpoint: disabled)');
    if (status !== 200) throw new Error(`the metadata service gives no token: status ${status}`);
    return text;
  }

  return {
    async read(path) {
      token ??= newToken();
      const { status, text } = await ask('GET', path, { 'x-aws-ec2-metadata-token': await token });
      if (status === 200) return text;
      if (status === 404) return undefined;
      throw new Error(`the metadata service answers ${path} with status ${status}`);
    },
  };
}

function exchange(
  base: URL,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  timeoutMilliseconds: number,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMilliseconds);
    // An answer that has further to go than the instance's hop limit never comes: a pod sees only silence.
    const fail = (cause: Error): void => reject(new Error('the metadata service cannot be reached', { cause }));
    const outgoing = request(
      {
        // Never through a proxy, whatever the environment says: what it tells is this machine's alone.
        agent: false,
        method,
        host: base.hostname.replace(/^\[|\]$/g, ''),
        port: base.port === '' ? 80 : base.port,
        path,
        headers: { ...headers, ...(method === 'PUT' ? { 'content-length': 0 } : {}) },
        signal,
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        let length = 0;
        incoming.on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > maxBytes) incoming.destroy(new Error('the answer is too large'));
          else chunks.push(chunk);
        });
        incoming.on('error', fail);
        incoming.on('end', () =>
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks, length).toString('utf8') }),
        );
      },
    );
    outgoing.on('error', fail);
    outgoing.end();
  });
}
