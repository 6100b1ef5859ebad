/** `npm run dev`: serves the signing stack on loopback, for any client of the webhook protocol. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { durationText } from '../cli/output/output.ts';
import { problemText } from '../cli/cluster/cluster-choice.ts';
import { defaultCluster, parseConfiguration } from '../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { requestLog } from './serve/request-log.ts';
import type { Output } from './serve/request-log.ts';
import { openSignService, serveSignService } from './serve/sign-service.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

const exitCodes = { ok: 0, failed: 1, usage: 2, configuration: 3 } as const;

const defaultPort = 8443;
const defaultTtl = '24h';

const helpText = `Serves the signing stack on this machine: the handler that runs in Lambda, over an embedded key and store.

Usage: npm run dev -- [options]

  --port PORT      on 127.0.0.1; 0 takes a free one (default: ${defaultPort})
  --cluster NAME   the cluster to serve (default: demo); with --config one of that file instead of all
  --max-ttl TTL    longest lifetime of a certificate, such as 24h, 90m, 30d (default: ${defaultTtl}); not with --config
  --data DIR       keep CA and ledger in DIR/NAME across restarts (default: in memory)
  --config FILE    a countersign.yaml instead of the four kubernetes.io signers
  --help

Examples:
  npm run dev -- --port 8443
  npm run dev -- --port 8443 --cluster kind --data ./countersign-data
  npm run dev -- --port 8443 --config countersign.yaml --cluster prod

Exit codes: 0 stopped by a signal, 2 usage, 3 configuration, data folder or port.
More: docs/dev-server.md
`;

interface Settings {
  readonly port: number;
  readonly clusters: readonly ClusterConfiguration[];
  readonly dataFolder?: string;
}
/** The settings, or the message and the exit code. */
type Parsed = { readonly settings: Settings } | { readonly text: string; readonly code: number };

const terminal: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

/** Serves until `stopped` is settled. */
export async function main(argv: readonly string[], output = terminal, stopped = stopSignal): Promise<number> {
  const { out, err } = output;
  const parsed = parseSettings(argv);
  if ('text' in parsed) {
    (parsed.code === exitCodes.ok ? out : err)(parsed.text);
    return parsed.code;
  }
  const { settings } = parsed;
  try {
    const service = await openSignService({ ...settings, log: requestLog(output) });
    try {
      const http = await serveSignService(service, settings.port);
      out(banner(settings, http.url));
      await stopped();
      out('\nstopping\n');
      await http.close();
    } finally {
      service.close();
    }
    return exitCodes.ok;
  } catch (error) {
    err(`dev: ${reasonOf(error, settings.port)}\n`);
    return exitCodes.configuration;
  }
}

function parseSettings(argv: readonly string[]): Parsed {
  let flags;
  try {
    flags = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: false,
      options: {
        port: { type: 'string', default: String(defaultPort) },
        cluster: { type: 'string' },
        'max-ttl': { type: 'string' },
        data: { type: 'string' },
        config: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    return usage(errorMessage(error));
  }
  if (flags.help) return { text: helpText, code: exitCodes.ok };
  if (!/^\d{1,5}$/.test(flags.port) || Number(flags.port) > 65_535)
    return usage(`--port ${flags.port}: not a port number`);
  if (flags.data === '') return usage('--data: names no folder');
  const chosen =
    flags.config === undefined
      ? defaultClusters(flags.cluster ?? 'demo', flags['max-ttl'] ?? defaultTtl)
      : flags['max-ttl'] === undefined
        ? configuredClusters(flags.config, flags.cluster)
        : usage('--max-ttl: countersign.yaml sets the lifetime, so the flag cannot be used with it');
  if ('text' in chosen) return chosen;
  return {
    settings: {
      port: Number(flags.port),
      clusters: chosen,
      ...(flags.data === undefined ? {} : { dataFolder: resolve(flags.data) }),
    },
  };
}

function usage(message: string): { text: string; code: number } {
  return { text: `dev: ${message}\ndev: --help shows all options\n`, code: exitCodes.usage };
}

function defaultClusters(name: string, ttl: string): readonly ClusterConfiguration[] | { text: string; code: number } {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
    return usage(`--cluster ${name}: not a DNS label (lower-case letters, digits, inner hyphens)`);
  const [, count, unit] = /^([1-9]\d{0,6})([smhd])$/.exec(ttl) ?? [];
  const seconds = Number(count) * ({ s: 1, m: 60, h: 3_600, d: 86_400 }[unit ?? ''] ?? Number.NaN);
  if (Number.isNaN(seconds)) return usage(`--max-ttl ${ttl}: not a duration such as 24h, 90m or 30d`);
  try {
    return [defaultCluster(name, { maxTtlSeconds: seconds })];
  } catch (error) {
    return usage(`--max-ttl ${ttl}: ${errorMessage(error)}`);
  }
}

function configuredClusters(
  file: string,
  name: string | undefined,
): readonly ClusterConfiguration[] | { text: string; code: number } {
  const wrong = (text: string): { text: string; code: number } => ({
    text: `${text}\n`,
    code: exitCodes.configuration,
  });
  let yaml;
  try {
    yaml = readFileSync(file, 'utf8');
  } catch (error) {
    return wrong(`dev: --config: ${errorMessage(error)}`);
  }
  const parsed = parseConfiguration(yaml, file);
  if (!parsed.ok) return wrong(parsed.problem.map(problemText).join('\n'));
  const clusters = [...parsed.value.configuration.clusters.values()].filter(
    (each) => name === undefined || each.name === name,
  );
  return clusters.length > 0 ? clusters : wrong(`dev: ${file} has no cluster ${name}`);
}

function banner({ clusters, dataFolder }: Settings, url: string): string {
  const state = dataFolder === undefined ? 'in memory, gone when this stops' : `${dataFolder} (kept)`;
  const parts = [`Countersign dev server on ${url}, this machine only. State: ${state}.\n`];
  for (const { name, profiles, attestation } of clusters) {
    const base = `${url}/v1/clusters/${name}`;
    const signers = [...profiles.values()].map(
      ({ signerName, maxTtlSeconds }) => `            ${signerName}, up to ${durationText(maxTtlSeconds)}\n`,
    );
    const places = [
      ['webhook', 'sign'],
      ...(attestation === undefined ? [] : [['attest', 'attest'] as const]),
      ['CA', 'trust-bundle'],
      ['health', 'healthz'],
    ] as const;
    parts.push(
      `  cluster   ${name}\n${places.map(([what, path]) => `  ${what.padEnd(9)} ${base}/${path}\n`).join('')}`,
      `  signers\n${signers.join('')}`,
      `  kubeconfig for a webhook client (--cluster-signing-gke-kubeconfig):\n\n${webhookKubeconfig(`${base}/sign`)}`,
      `  relay for a cluster of yours:\n\n    node dev/run.mjs lambdas/watch-relay/index.ts --url ${base} --kubeconfig ~/.kube/config\n`,
    );
  }
  return `${parts.join('\n')}\nStop with Ctrl-C.\n`;
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
      if (first !== undefined && performance.now() - first > 1_000) process.exit(exitCodes.failed);
      first ??= performance.now();
      resolve();
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

function reasonOf(error: unknown, port: number): string {
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: '', message: String(error) };
  if (code === 'EADDRINUSE') return `port ${port} is taken; --port 0 takes a free one`;
  if (code === 'EACCES' && message.startsWith('listen'))
    return `port ${port} needs other rights; choose one above 1023`;
  return message;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
