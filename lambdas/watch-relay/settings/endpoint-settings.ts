/** The endpoint and the relay's credentials for it. Throws InvalidArgumentError for settings that cannot be used. */
import { InvalidArgumentError } from 'commander';

/** How calls to the endpoint are authenticated. */
export type Caller =
  /** For a front door that admits every caller, such as the dev server, or admits the relay by its IP address. */
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'tokenFile'; readonly path: string }
  | { readonly kind: 'role'; readonly arn: string; readonly region?: string };

interface Endpoint {
  readonly url: string;
  readonly cluster: string;
}

/** The URL or `--cluster` names the cluster. If both do, the names must be equal. */
export function endpointOf(text: string, cluster: string | undefined, flag = '--url'): Endpoint {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidArgumentError(`${flag} ${text}: not a URL`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new InvalidArgumentError(`${flag} ${text}: not http or https`);
  // The message omits the URL, since it may contain a secret.
  if (url.username !== '' || url.password !== '') throw new InvalidArgumentError(`${flag}: must not carry credentials`);
  if (url.search !== '' || url.hash !== '')
    throw new InvalidArgumentError(`${flag}: must not have a query or fragment`);
  if (cluster !== undefined && !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(cluster))
    throw new InvalidArgumentError(`cluster ${cluster}: not lower-case letters, digits and dashes`);
  const path = url.pathname.replace(/\/+$/, '');
  const named = /\/v1\/clusters\/([^/]+)$/.exec(path)?.[1];
  if (named !== undefined && cluster !== undefined && named !== cluster)
    throw new InvalidArgumentError(`${flag} names cluster ${named}, --cluster or COUNTERSIGN_CLUSTER ${cluster}`);
  const name = named ?? cluster;
  if (name === undefined)
    throw new InvalidArgumentError('--cluster or COUNTERSIGN_CLUSTER must say which cluster this is');
  return { url: `${url.origin}${named === undefined ? `${path}/v1/clusters/${name}` : path}`, cluster: name };
}

/** The URL of attest, if it is separate. It gets the same credentials, so it must be as private as the endpoint. */
export function attestEndpoint(text: string | undefined, endpoint: Endpoint): string | undefined {
  if (text === undefined || text === '') return undefined;
  const { url } = endpointOf(text, endpoint.cluster, '--attest-url');
  const [attest, sign] = [new URL(url), new URL(endpoint.url)];
  if (attest.protocol === sign.protocol && (isPrivate(attest) || !isPrivate(sign))) return url;
  throw new InvalidArgumentError('--attest-url: must be https, or on this machine, as --url is');
}

/** Commander refuses `--token-file` together with `--caller-role`. */
export function parseCaller(
  { tokenFile, callerRole: arn }: { readonly tokenFile?: string; readonly callerRole?: string },
  environment: Readonly<Record<string, string | undefined>>,
  endpoint: string,
): Caller {
  if (tokenFile === undefined && arn === undefined) return { kind: 'anonymous' };
  // An eavesdropper could use a token for as long as it is valid, and a signature for five minutes.
  if (!isPrivate(new URL(endpoint)))
    throw new InvalidArgumentError(
      `--url ${endpoint}: must be https, or on this machine, since credentials are sent there`,
    );
  if (tokenFile !== undefined) return { kind: 'tokenFile', path: tokenFile };
  if (arn === undefined || !/^arn:aws(-[a-z]+)*:iam::\d{12}:role\/[\w+=,.@/-]+$/.test(arn))
    throw new InvalidArgumentError(
      `caller role ${arn}: not the ARN of a role, such as arn:aws:iam::111122223333:role/countersign-prod-caller`,
    );
  const region = environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'] || undefined;
  return { kind: 'role', arn, ...(region === undefined ? {} : { region }) };
}

function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(hostname);
}
