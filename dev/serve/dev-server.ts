/** What `countersign dev` serves until it is stopped: sign and attest over embedded stores, and a stand-in of a cluster if asked for. */
import { writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../adapters/embedded/make-folder.ts';
import { connectKubernetes } from '../../adapters/kubernetes/api.ts';
import { textAnswer } from '../../adapters/lambda/http.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { durationText } from '../../cli/output/output.ts';
import { CommandFailure, exitCodes } from '../../cli/runtime/exit.ts';
import type { DevRelay, DevSettings } from '../../cli/runtime/io.ts';
import { scheduleInterval } from '../../core/attestation/retirement/schedule.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { startCsrApi } from '../csr-api/csr-api.ts';
import type { HttpService } from '../csr-api/node-http.ts';
import { startRelay } from './relay.ts';
import { requestLog } from './request-log.ts';
import type { Output } from './request-log.ts';
import { openSignService, serveSignService } from './sign-service.ts';
import type { SignService } from './sign-service.ts';

/** Serves until `stopped` is settled. Throws CommandFailure if it cannot start. */
export async function serveDev(settings: DevSettings, output: Output, stopped = stopSignal): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  try {
    const service = await openSignService({ ...settings, log: requestLog(output) });
    cleanups.push(service.close);
    cleanups.push(lookBySchedule(service));
    const http = await serveSignService({ handler: withIndex(service.handler, settings) }, settings.port);
    cleanups.push(http.close);
    const { relay } = settings;
    if (relay !== undefined) cleanups.push(await connectCluster(relay, http, output));
    // Before the banner, whose reader may stop the server at once.
    const end = stopped();
    output.out(banner(settings, http.url));
    await end;
    output.out('\nstopping\n');
  } catch (error) {
    throw new CommandFailure(exitCodes.configuration, reasonOf(error, settings.port));
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

/** Looks for terminated machines, as EventBridge has attest do it. The result ends the schedule, after a look that is under way. */
function lookBySchedule({ look }: SignService): () => Promise<void> {
  let running = Promise.resolve();
  const timer = setInterval(() => void (running = running.then(look)), scheduleInterval);
  return async () => {
    clearInterval(timer);
    await running;
  };
}

/** A relay, and the stand-in of an API server if it is for one. The result stops both. */
async function connectCluster(
  { api, cluster, kubeconfigFile, context }: DevRelay,
  { url }: HttpService,
  { err }: Output,
): Promise<() => Promise<void>> {
  const standIn = api === 'stand-in' ? await startStandIn(kubeconfigFile) : undefined;
  const connection = connectKubernetes({
    kind: 'kubeconfig',
    path: kubeconfigFile,
    ...(context === undefined ? {} : { context }),
  });
  const relay = startRelay(cluster, {
    api: connection.requests,
    url: clusterUrl(url, cluster),
    complain: (text) => err(`${text}\n`),
  });
  return async () => {
    await relay.stop();
    connection.close();
    await standIn?.close();
  };
}

async function startStandIn(kubeconfigFile: string): Promise<Pick<HttpService, 'close'>> {
  const api = await startCsrApi();
  makeFolder(dirname(kubeconfigFile));
  writeFileSync(kubeconfigFile, api.kubeconfig(), { mode: 0o600 });
  return api;
}

const clusterUrl = (url: string, { name }: ClusterConfiguration): string => `${url}/v1/clusters/${name}`;

/** `/` lists the paths, for an operator who opens the URL of the server. */
function withIndex(handler: HttpHandler, { clusters }: DevSettings): HttpHandler {
  const lines = clusters.flatMap((cluster) => pathsOf(cluster).map(([what, path]) => `${path}  ${what}\n`));
  const text = `Countersign dev server. It serves, per cluster:\n\n${lines.join('')}\ndocs/signing-api.md describes them.\n`;
  return async (event, context) =>
    event.rawPath === '/' && event.requestContext.http.method === 'GET'
      ? textAnswer(200, 'text/plain; charset=utf-8', text)
      : handler(event, context);
}

/** What each path is for, and the path. */
function pathsOf({ name, attestation }: ClusterConfiguration): readonly (readonly [what: string, path: string])[] {
  const paths = [
    ['webhook', 'sign'],
    ...(attestation === undefined ? [] : [['attest', 'attest'] as const]),
    ...(attestation?.retireTerminated === true ? [['look', 'attest/look'] as const] : []),
    ['CA', 'trust-bundle'],
    ['health', 'healthz'],
  ] as const;
  return paths.map(([what, path]) => [what, `/v1/clusters/${name}/${path}`]);
}

function banner({ clusters, dataFolder, relay }: DevSettings, url: string): string {
  const state = dataFolder === undefined ? 'in memory, gone when this stops' : `${dataFolder} (kept)`;
  const parts = [`Countersign dev server on ${url}, this machine only. State: ${state}.\n`];
  for (const cluster of clusters) {
    const signers = [...cluster.profiles.values()].map(
      ({ signerName, maxTtlSeconds }) => `            ${signerName}, up to ${durationText(maxTtlSeconds)}\n`,
    );
    const paths = pathsOf(cluster).map(([what, path]) => `  ${what.padEnd(9)} ${url}${path}\n`);
    parts.push(`  cluster   ${cluster.name}\n${paths.join('')}`, `  signers\n${signers.join('')}`);
    if (relay === undefined)
      parts.push(
        `  kubeconfig for a webhook client (--cluster-signing-gke-kubeconfig):\n\n${webhookKubeconfig(`${clusterUrl(url, cluster)}/sign`)}`,
      );
  }
  const next = relay === undefined ? nextWithout(clusters) : nextWith[relay.api](relay);
  return `${parts.join('\n')}\n${next}\nStop with Ctrl-C.\n`;
}

const nextWith: Readonly<Record<DevRelay['api'], (relay: DevRelay) => string>> = {
  'stand-in': nextWithStandIn,
  cluster: ({
    cluster,
  }) => `  A relay for the cluster, with your rights: approved requests for the signers of ${cluster.name} get their certificates.
`,
};

function nextWithStandIn({ cluster, kubeconfigFile }: DevRelay): string {
  const signer = ['kubernetes.io/kube-apiserver-client', ...cluster.profiles.keys()].find((name) =>
    cluster.profiles.has(name),
  );
  return `  A stand-in of the API of cluster ${cluster.name}, with a relay: ${kubeconfigFile}

  Next, in another terminal:

    export KUBECONFIG=${kubeconfigFile}
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout jane.key -subj /CN=jane -out jane.csr
    countersign csr create jane jane.csr --signer-name ${signer} --usages 'client auth'
    countersign csr approve jane --reason 'a first try'
    countersign csr certificate jane > jane.crt
`;
}

function nextWithout([cluster]: readonly ClusterConfiguration[]): string {
  return `  Next: a stand-in of a cluster besides, for a first certificate in a minute:

    countersign dev --cluster ${cluster?.name ?? 'demo'} --write-kubeconfig dev.kubeconfig
`;
}

/** The user has no credentials, since a webhook client sends none over plain HTTP. */
function webhookKubeconfig(server: string): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    `clusters: [{name: countersign, cluster: {server: "${server}"}}]`,
    'users: [{name: webhook, user: {}}]',
    'contexts: [{name: webhook, context: {cluster: countersign, user: webhook}}]',
    'current-context: webhook',
    '',
  ].join('\n');
}

/** npm and the terminal may each forward the same Ctrl-C. A second Ctrl-C, more than a second later, ends the process at once. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const onSignal = (): void => {
      if (first !== undefined && performance.now() - first > 1_000) process.exit(exitCodes.refused);
      first ??= performance.now();
      resolve();
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

function reasonOf(error: unknown, port: number): string {
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: '', message: errorMessage(error) };
  if (code === 'EADDRINUSE') return `port ${port} is taken; --port 0 takes a free one`;
  if (code === 'EACCES' && message.startsWith('listen'))
    return `port ${port} needs other rights; choose one above 1023`;
  return message;
}
