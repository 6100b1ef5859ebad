/**
 * The metadata server of this VM of Google. It answers only requests with the header `Metadata-Flavor: Google`, which an attacker
 * who can make a program fetch a URL cannot set, and answers with the same header, which other servers do not.
 * https://cloud.google.com/compute/docs/metadata/querying-metadata
 */
import { request } from 'node:http';
import { exchange, wholeAnswer } from '../http/exchange.ts';
import type { WholeAnswer } from '../http/exchange.ts';

export interface GoogleMetadata {
  /** The text at `/computeMetadata/v1/<path>`; undefined if the path does not exist. Throws if the server does not answer. */
  read(path: string): Promise<string | undefined>;
}

export interface MetadataOptions {
  /** GCE_METADATA_HOST, as in Google's libraries: `host` or `host:port`, for IPv6-only networks and tests. */
  readonly host?: string | undefined;
  readonly timeoutMilliseconds?: number;
}

/** Not metadata.google.internal: any host that answers for that name would be believed. */
const linkLocal = '169.254.169.254';
/** For one answer, which comes from the VM's own host. */
const answerMilliseconds = 2_000;
/** The server answers 503 for moments while the VM is moved to another host. */
const attempts = 3;
const maxBytes = 65_536;

export function connectMetadata({
  host = linkLocal,
  timeoutMilliseconds = answerMilliseconds,
}: MetadataOptions = {}): GoogleMetadata {
  const { hostname, port } = new URL(`http://${host}`);
  const outgoing = {
    // No proxy, even if the environment names one: a proxy would call the metadata server of another VM.
    agent: false,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 80 : port,
    headers: { host: 'metadata.google.internal', 'metadata-flavor': 'Google' },
  };

  async function call(path: string): Promise<WholeAnswer> {
    const send = () => request({ ...outgoing, path: `/computeMetadata/v1/${path}` }).end();
    let answer: WholeAnswer;
    try {
      answer = await exchange({ timeoutMilliseconds, send, read: wholeAnswer(maxBytes) });
    } catch (cause) {
      throw new Error('the metadata server cannot be reached', { cause });
    }
    if (answer.status >= 500 || answer.status === 429)
      throw new Error(`the metadata server answers with status ${answer.status}`);
    return answer;
  }

  return {
    async read(path) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const { status, headers, body } = await call(path);
          if (headers['metadata-flavor'] !== 'Google') throw new Error('this is no metadata server of Google');
          if (status === 200) return body.toString('utf8');
          if (status === 404) return undefined;
          throw new Error(`the metadata server answers with status ${status}`);
        } catch (error) {
          if (attempt === attempts) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
      }
    },
  };
}
