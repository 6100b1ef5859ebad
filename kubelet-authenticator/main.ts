/**
 * Runs a command on the node and returns its exit code. The kubelet waits for `exec`, so modules that a cached call does not
 * need are imported dynamically.
 */
import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { oneLine } from '../core/outcome/printable-text.ts';
import { codeOf, whyUnread } from './files/cache.ts';
import { presentCredential } from './credential/credential.ts';
import type { Dependencies, NotIssued, Work } from './credential/credential.ts';
import { decodeExecInfo, encodeExecCredential } from './credential/exec-credential.ts';
import { readOwnFile } from './files/own-files.ts';
import { defaultSettingsFile, resolveSettings, settingFlags } from './settings/settings.ts';
import type { Settings, SettingFlags } from './settings/settings.ts';
import { usageMessage } from '../core/outcome/error-message.ts';

export const exits = { ok: 0, refused: 1, usage: 2, configuration: 3, temporary: 5 } as const;
type Exit = (typeof exits)[keyof typeof exits];

const usage = `usage: kubelet-authenticator exec | join | serving | version [flags]

  exec      print this node's client certificate as an ExecCredential; the kubelet calls it through its kubeconfig
  join      find the cluster and write the files that the kubelet needs (kubelet-authenticator join --help)
  serving   obtain and renew the kubelet's serving certificate
  version   print the version

flags of exec and serving:
  --settings FILE               the settings file that join wrote (default ${defaultSettingsFile})
  --node-name, --cluster-name, --audience, --provider, --server, --certificate-authority, --bootstrap-credentials,
  --cache-dir, --signer-name, --serving-signer-name, --client-ca-bundle, --key-kind, --evidence-version, --endorsement-key,
  --attestation-certificate, --attestation-key, --attestation-name, --serving-name
                                each overrides the value in the settings file
  --keep-bootstrap-token        leave the bootstrap token on disk after the first certificate
  --wait SECONDS                exec: how long to wait if the node has no valid certificate (default 120)
  --once, --watch               serving: obtain the certificate once (default), or keep running and renew it

examples:
  users:                                              # in the kubelet's kubeconfig
  - name: node
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1
        command: /usr/local/bin/kubelet-authenticator
        args: [exec]
        interactiveMode: Never

  kubelet-authenticator serving --watch               # in a systemd unit of its own
  kubelet-authenticator exec --client-ca-bundle /etc/kubernetes/pki/client-cas.pem

exit codes: 0 ok, 1 refused, 2 usage, 3 configuration, 5 temporary (try again)
`;

const options = {
  ...(Object.fromEntries(Object.keys(settingFlags).map((flag) => [flag, { type: 'string' }])) as Record<
    keyof typeof settingFlags,
    { readonly type: 'string' }
  >),
  'serving-name': { type: 'string', multiple: true },
  'keep-bootstrap-token': { type: 'boolean' },
  settings: { type: 'string' },
  wait: { type: 'string' },
  once: { type: 'boolean' },
  watch: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Writes to the file descriptor: loading `process.stdout` would double the time of a cached call. */
const out = (text: string): void => write(1, text);
const log = (line: string): void => write(2, `kubelet-authenticator: ${oneLine(line)}\n`);
const dependencies: Dependencies = { now: Date.now, log };

export async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  switch (command) {
    case 'exec':
    case 'serving':
      return run(command, rest);
    case 'join':
      return (await import('./join/join.ts')).joinCommand(rest);
    case 'version':
    case '--version':
      out(`${(await import('../core/version.ts')).version}\n`);
      return exits.ok;
    case '--help':
    case '-h':
    case 'help':
      out(usage);
      return exits.ok;
    case undefined:
    default:
      log(command === undefined ? 'no command given' : `there is no command ${JSON.stringify(command.slice(0, 64))}`);
      write(2, usage);
      return exits.usage;
  }
}

async function run(command: 'exec' | 'serving', argv: readonly string[]): Promise<Exit> {
  let values;
  try {
    ({ values } = parseArgs({ args: [...argv], options }));
  } catch (error) {
    log(usageMessage(error));
    return exits.usage;
  }
  if (values.help === true) {
    out(usage);
    return exits.ok;
  }
  const settings = readSettings(values.settings, values);
  if (settings === undefined) return exits.configuration;
  return command === 'exec' ? exec(settings, values.wait) : serving(settings, values.watch === true);
}

async function exec(settings: Settings, wait = '120'): Promise<Exit> {
  const info = decodeExecInfo(process.env['KUBERNETES_EXEC_INFO']);
  if (!info.ok || !/^\d{1,4}$/.test(wait)) {
    log(info.ok ? '--wait must be a number of seconds' : info.problem);
    return exits.usage;
  }
  const started = dependencies.now() - Math.round(process.uptime() * 1_000);
  const patience = Number(wait) * 1_000;
  const answer = await presentCredential(settings, clientWork(settings), dependencies, patience, started);
  if (answer.kind !== 'credential') {
    log('this node has no valid certificate to log in with');
    return exitOf(answer.kind);
  }
  const { certificatePem, keyPem } = answer.credential;
  out(encodeExecCredential(info.value, { certificatePem, keyPem, askAgainAt: answer.askAgainAt }));
  return exits.ok;
}

function exitOf(kind: NotIssued['kind']): Exit {
  switch (kind) {
    case 'refused':
      return exits.refused;
    case 'misconfigured':
      return exits.configuration;
    case 'waiting':
    case 'failed':
      return exits.temporary;
  }
}

function clientWork(settings: Settings): Work {
  return async (current, until) => {
    const [{ clientSpec }, { obtain }] = await Promise.all([
      import('./credential/certificate-spec.ts'),
      import('./credential/obtain.ts'),
    ]);
    return obtain(await clientSpec(settings, dependencies), current, until);
  };
}

async function serving(settings: Settings, watch: boolean): Promise<Exit> {
  const { servingSignerName } = settings;
  if (servingSignerName === undefined) {
    log(
      'servingSignerName (--serving-signer-name) is missing: without it the kubelet requests its serving certificate itself',
    );
    return exits.configuration;
  }
  const { keepServing, watchServing } = await import('./credential/serving.ts');
  const complete = { ...settings, servingSignerName };
  if (!watch) {
    const progress = await keepServing(complete, clientWork(settings), dependencies);
    if (progress.kind === 'issued') return exits.ok;
    log(progress.message);
    return exitOf(progress.kind);
  }
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
  await watchServing(complete, clientWork(settings), dependencies, stop.signal);
  return exits.ok;
}

/**
 * undefined if a problem was logged. The settings file may be missing only if flags give every required setting.
 */
function readSettings(file: string | undefined, flags: SettingFlags): Settings | undefined {
  let text: string | undefined;
  try {
    text = readOwnFile(file ?? defaultSettingsFile);
  } catch (error) {
    if (file !== undefined || codeOf(error) !== 'ENOENT') {
      log(`the settings: ${whyUnread(file ?? defaultSettingsFile, error)}`);
      return undefined;
    }
  }
  const resolved = resolveSettings(text, flags);
  if (resolved.ok) return resolved.value;
  for (const problem of resolved.problem) log(problem);
  if (text === undefined)
    log(`kubelet-authenticator join writes all settings to ${defaultSettingsFile}; --settings names another file`);
  return undefined;
}

function write(descriptor: number, text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  for (let written = 0; written < bytes.length;) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      // EAGAIN: the reader of the pipe is slow. Other errors: the reader has closed it, so the text is dropped.
      if (codeOf(error) !== 'EAGAIN') return;
    }
  }
}
