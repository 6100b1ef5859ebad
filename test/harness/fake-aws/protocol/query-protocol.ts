/**
 * The parameters of a request by AWS's Query protocol: a form in the body of a POST, or the query of a GET. Google's workload identity
 * federation rests on a third form, which STS takes: the query of a POST without a body.
 */
import type { ReceivedRequest } from '../../aws/sigv4-verifier.ts';
import type { AwsError } from './authentication.ts';

export type Parameters = Readonly<Record<string, string>>;

/** Without those of a signature. A name twice, in whatever case, is refused: which one counts would be a guess. */
export function readQueryProtocol({
  method,
  target,
  headers,
  body,
}: ReceivedRequest): { parameters: Parameters } | AwsError {
  const { pathname, search } = new URL(target, 'http://fake');
  if (pathname !== '/' || !target.startsWith('/')) return malformed('the path is not /');
  const bare = method === 'POST' && body.length === 0 && headers['content-type'] === undefined;
  if (method === 'POST' && !bare) {
    if (search !== '') return malformed('parameters in the query of a POST');
    if (!/^application\/x-www-form-urlencoded(;|$)/.test(headers['content-type'] ?? ''))
      return malformed('the body is no form');
  } else if (method !== 'GET' && !bare) return malformed(`${method} is not of this protocol`);

  const form = method === 'POST' && !bare ? Buffer.from(body).toString('utf8') : search.slice(1);
  const all = [...new URLSearchParams(form)];
  if (new Set(all.map(([name]) => name.toLowerCase())).size !== all.length) return malformed('a parameter came twice');
  return { parameters: Object.fromEntries(all.filter(([name]) => method === 'POST' || !name.startsWith('X-Amz-'))) };
}

function malformed(message: string): AwsError {
  return { status: 400, code: 'MalformedQueryString', message };
}
