/** The command line of `kubelet-authenticator join`, checked completely before the network is used. */
import { isAbsolute } from 'node:path';
import { parseArgs } from 'node:util';
import { usageMessage } from '../../core/outcome/error-message.ts';
import { success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { discoveryOf, tokensOf } from './cluster-flags.ts';
import type { Discover, FlagDependencies } from './cluster-flags.ts';
import type { FirstLogin } from './first-login.ts';
import { placesOf, servingWays } from './join-files.ts';
import type { ServingWay } from './join-files.ts';
import { joinOptions } from './join-options.ts';
import type { JoinFlags } from './join-options.ts';
import { resolveSettings } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';
import { usage } from './stop.ts';
import type { Stop } from './stop.ts';

export interface JoinPlan {
  readonly discover: Discover;
  readonly settings: (server: string) => Result<Settings, Stop>;
  readonly login: FirstLogin;
  readonly serving: ServingWay;
  readonly directory: string;
  readonly command: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly timeoutSeconds: number;
}

/** undefined: the operator asks for help. */
export function planOf(argv: readonly string[], dependencies: FlagDependencies): Result<JoinPlan | undefined, Stop> {
  let given;
  try {
    given = parseArgs({ args: [...argv], options: joinOptions, allowPositionals: true });
  } catch (error) {
    return usage(usageMessage(error));
  }
  const { values: flags, positionals } = given;
  if (flags.help === true) return success(undefined);
  if (positionals.length > 1) return usage('give only one <host:port>');

  const tokens = tokensOf(flags, dependencies);
  if (!tokens.ok) return tokens;
  const discover = discoveryOf(flags, positionals[0], tokens.value, dependencies);
  if (!discover.ok) return discover;
  const serving = servingWays.find((way) => way === (flags.serving ?? 'kubelet'));
  if (serving === undefined) return usage(`--serving must be one of ${servingWays.join(', ')}`);
  const directory = flags.directory ?? '/etc/kubernetes';
  const command = flags.command ?? dependencies.program;
  if (!isAbsolute(directory) || !isAbsolute(command)) return usage('--directory and --command must be absolute paths');
  const timeout = flags['discovery-timeout'] ?? '300';
  if (!/^\d{1,5}$/.test(timeout)) return usage('--discovery-timeout must be a number of seconds');

  const { login } = tokens.value;
  if (login.kind === 'file' && login.file === placesOf(directory).kubeconfig)
    return usage(
      `join replaces ${login.file}, and the first certificate is requested with the login in it: name a copy`,
    );
  const settings = settingsOf(flags, { serving, directory, login, hostname: dependencies.hostname() });
  // Only the server is unknown yet. Report every other problem before the network is used.
  const checked = settings('https://127.0.0.1');
  if (!checked.ok) return checked;
  return success({
    discover: discover.value,
    settings,
    login,
    serving,
    directory,
    command,
    dryRun: flags['dry-run'] === true,
    force: flags.force === true,
    timeoutSeconds: Number(timeout),
  });
}

function settingsOf(
  flags: JoinFlags,
  {
    serving,
    directory,
    login,
    hostname: host,
  }: {
    readonly serving: ServingWay;
    readonly directory: string;
    readonly login: FirstLogin;
    readonly hostname: string;
  },
): JoinPlan['settings'] {
  const places = placesOf(directory);
  const provider = flags.provider ?? 'aws';
  const audience = flags.audience ?? '';
  const given = {
    ...flags,
    'node-name': flags['node-name'] ?? host.trim().toLowerCase(),
    audience,
    'cluster-name': flags['cluster-name'] ?? (audience.includes('/') ? (audience.split('/').at(-1) ?? '') : ''),
    provider,
    'certificate-authority': places.ca,
    'bootstrap-credentials': login.kind === 'file' ? login.file : places.bootstrapCredentials,
    ...(serving === 'attested'
      ? { 'serving-signer-name': flags['serving-signer-name'] ?? `cluster.x-k8s.io/kubelet-serving-${provider}` }
      : {}),
  };
  return (server) => {
    if (audience === '')
      return usage(
        '--audience is missing: the deployment that checks this node’s evidence, as countersign token create prints it',
      );
    if (serving === 'attested' && provider === 'insecure')
      return usage('--serving attested needs a provider that proves the machine’s identity; insecure does not');
    if (serving !== 'attested' && (flags['serving-signer-name'] !== undefined || flags['serving-name'] !== undefined))
      return usage('--serving-signer-name and --serving-name need --serving attested');
    const resolved = resolveSettings(undefined, { ...given, server });
    return resolved.ok ? resolved : usage(resolved.problem.join('\n'));
  };
}
