/** Where the endpoint is and who the relay is to it, from flags and environment. */

/** How calls to the endpoint are signed. */
export type Caller =
  /** Whoever is in front lets everybody in, or knows the relay by its address: the dev server. */
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'tokenFile'; readonly path: string }
  | { readonly kind: 'role'; readonly arn: string; readonly region?: string };

type Environment = Readonly<Record<string, string | undefined>>;
type Problem = { readonly problem: string };

/** The cluster is named once: in the URL, or beside it, or in both alike. */
export function endpointUrl(
  text: string,
  cluster: string | undefined,
): { readonly url: string; readonly cluster: string } | Problem {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { problem: `--url ${text}: not a URL` };
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return { problem: `--url ${text}: not http or https` };
  // Not shown: whatever is there may be a secret.
  if (url.username !== '' || url.password !== '') return { problem: '--url: must not carry credentials' };
  if (url.search !== '' || url.hash !== '') return { problem: '--url: must not have a query or fragment' };
  if (cluster !== undefined && !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(cluster))
    return { problem: `cluster ${cluster}: not lower-case letters, digits and dashes` };
  const path = url.pathname.replace(/\/+$/, '');
  const named = /\/v1\/clusters\/([^/]+)$/.exec(path)?.[1];
  if (named !== undefined && cluster !== undefined && named !== cluster)
    return { problem: `--url names cluster ${named}, --cluster or COUNTERSIGN_CLUSTER ${cluster}` };
  const name = named ?? cluster;
  if (name === undefined) return { problem: '--cluster or COUNTERSIGN_CLUSTER must say which cluster this is' };
  return { url: `${url.origin}${named === undefined ? `${path}/v1/clusters/${name}` : path}`, cluster: name };
}

/** Where attest is, if that is said. Credentials go there too: no less private than the other. */
export function attestEndpoint(
  text: string | undefined,
  endpoint: { readonly url: string; readonly cluster: string },
): { readonly url: string } | Problem | undefined {
  if (text === undefined || text === '') return undefined;
  const attest = endpointUrl(text, endpoint.cluster);
  const named = (problem: string): Problem => ({ problem: problem.replace('--url', '--attest-url') });
  if ('problem' in attest) return named(attest.problem);
  const [there, here] = [new URL(attest.url), new URL(endpoint.url)];
  return there.protocol === here.protocol && (isPrivate(there) || !isPrivate(here))
    ? attest
    : { problem: '--attest-url: must be https, or on this machine, as --url is' };
}

export function parseCaller(
  flags: { readonly 'token-file'?: string | undefined; readonly 'caller-role'?: string | undefined },
  environment: Environment,
  endpoint: string,
): { readonly caller: Caller } | Problem {
  const tokenFile = flags['token-file'];
  const role = flags['caller-role'] ?? (environment['COUNTERSIGN_CALLER_ROLE'] || undefined);
  if (tokenFile === undefined && role === undefined) return { caller: { kind: 'anonymous' } };
  if (tokenFile !== undefined && role !== undefined)
    return {
      problem: '--token-file and --caller-role or COUNTERSIGN_CALLER_ROLE: one of them, each is a way in of its own',
    };
  // What goes along can be used by whoever reads it: a token as it is, a signature for five minutes.
  if (!isPrivate(new URL(endpoint)))
    return { problem: `--url ${endpoint}: must be https, or on this machine, for credentials to be sent there` };
  if (tokenFile !== undefined)
    return tokenFile === ''
      ? { problem: '--token-file: names no file' }
      : { caller: { kind: 'tokenFile', path: tokenFile } };
  if (role === undefined || !/^arn:aws(-[a-z]+)*:iam::\d{12}:role\/[\w+=,.@/-]+$/.test(role))
    return {
      problem: `caller role ${role}: not the ARN of a role, such as arn:aws:iam::111122223333:role/prod-caller`,
    };
  const region = environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'] || undefined;
  return { caller: { kind: 'role', arn: role, ...(region === undefined ? {} : { region }) } };
}

function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(hostname);
}
