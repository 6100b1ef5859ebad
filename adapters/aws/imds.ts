/**
 * The metadata service of this EC2 instance, version 2 only: every GET carries a token that a PUT returned. An open proxy
 * that can be made to send only GET requests cannot read it.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
 */
import { request } from 'node:http';

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
/** For one answer. The service runs on the instance's host. */
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
    // A pod behind more hops than the instance's hop limit gets no answer at all.
    const fail = (cause: Error): void => reject(new Error('the metadata service cannot be reached', { cause }));
    const outgoing = request(
      {
        // No proxy, whatever the environment says: a proxy would ask the metadata service of another machine.
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
