/**
 * The forward proxy of the environment. Only https goes through it, in a tunnel (CONNECT): the proxy learns names of hosts, and
 * neither requests nor credentials. Plain http is for this machine: the agent of EKS Pod Identity, the instance's metadata.
 */

/** As `proxyEnv` of node:https. https://nodejs.org/api/http.html#built-in-proxy-support */
export interface ForwardProxy {
  /** May hold a password: never written to a log. */
  readonly HTTPS_PROXY: string;
  readonly NO_PROXY: string;
}

const thisMachine = ['localhost', '.localhost', '127.0.0.1', '::1', '[::1]'];

/** Undefined if the environment names no proxy. The lower-case variable comes first, as in curl. Throws a sentence for the operator. */
export function forwardProxy(environment: Readonly<Record<string, string | undefined>>): ForwardProxy | undefined {
  const given = environment['https_proxy'] || environment['HTTPS_PROXY'];
  if (!given) return undefined;
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`);
  if (url === null || url.hostname === '' || !['http:', 'https:'].includes(url.protocol))
    throw new Error('HTTPS_PROXY: must be the URL of an http or https proxy, such as http://proxy.example.com:3128');
  const except = environment['no_proxy'] || environment['NO_PROXY'];
  return { HTTPS_PROXY: url.href, NO_PROXY: [...(except ? [except] : []), ...thisMachine].join(',') };
}

/** Host and port, without a password. */
export function proxyHost({ HTTPS_PROXY }: ForwardProxy): string {
  return new URL(HTTPS_PROXY).host;
}
