/** The login to an API server: a kubeconfig with its exec plugins, or the service account of this pod. */
import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { createTransport, loginMilliseconds } from './transport.ts';
import type { KubernetesTransport } from './transport.ts';

/** Where the address of the API server and the login come from. */
export type KubernetesLogin =
  { readonly kind: 'kubeconfig'; readonly path: string; readonly context?: string } | { readonly kind: 'inCluster' };

/** Throws at once if the configuration cannot be read. */
export function connectTransport(
  login: KubernetesLogin,
  loginLimit: number = loginMilliseconds,
): {
  readonly transport: KubernetesTransport;
  readonly server: string;
  /** Names in the kubeconfig; empty if it has no such name. */
  readonly context: string;
  readonly user: string;
} {
  let config = load(login, loginLimit);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error('the kubeconfig has no current context with a cluster');
  const transport = createTransport(
    new URL(server),
    async (reload) => {
      // The library keeps exec credentials until they expire and reads some files only once, so a 401 reloads it.
      if (reload) config = load(login, loginLimit);
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      if (config.getCurrentCluster()?.proxyUrl === undefined) delete options.agent; // transport.ts keeps connections
      return options;
    },
    undefined,
    loginLimit,
  );
  return { transport, server, context: config.getCurrentContext(), user: config.getCurrentUser()?.name ?? '' };
}

function load(login: KubernetesLogin, loginLimit: number): KubeConfig {
  const config = new KubeConfig();
  limitPluginTime(config, loginLimit);
  if (login.kind === 'inCluster') config.loadFromCluster();
  else {
    config.loadFromFile(login.path);
    if (login.context !== undefined) config.setCurrentContext(login.context);
  }
  allowPlainLoopback(config);
  return config;
}

/** The library demands insecure-skip-tls-verify for http://. On the loopback interface there is no server identity to verify. */
function allowPlainLoopback(config: KubeConfig): void {
  const loopback = /^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?(\/|$)/;
  config.clusters = config.clusters.map((cluster) =>
    loopback.test(cluster.server) ? { ...cluster, skipTLSVerify: true } : cluster,
  );
}

type Run = (command: string, args: readonly string[], options: SpawnOptions) => ChildProcess;

/**
 * Kills an exec plugin after this time, with all processes that it started. The library would wait forever, and each retry
 * would leave another process behind. It has no setting for this, but its function that runs plugins can be replaced.
 */
function limitPluginTime(config: object, milliseconds: number): void {
  const { authenticators } = config as { readonly authenticators: readonly { execFn?: Run }[] };
  for (const authenticator of authenticators)
    if (authenticator.execFn !== undefined)
      authenticator.execFn = (command, args, options) => runFor(milliseconds, command, args, options);
}

function runFor(milliseconds: number, command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  // In its own process group, so that the kill reaches the children of a script, which keep its output open.
  const child = spawn(command, args, { ...options, detached: true });
  const timer = setTimeout(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It ended meanwhile.
    }
  }, milliseconds);
  child.once('close', () => clearTimeout(timer));
  child.once('error', () => clearTimeout(timer));
  return child;
}
