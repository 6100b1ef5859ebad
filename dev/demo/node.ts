/** A node of the demo: kubelet-authenticator in its own processes, and its files. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DemoFailure } from './scenario.ts';

export interface ProcessResult {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface PrintedCredential {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly askAgainAt: string;
  /** Standard output, unchanged. It holds the key. */
  readonly text: string;
  readonly stderr: string;
}

export interface DemoNode {
  readonly program: string;
  readonly directory: string;
  readonly cache: string;
  readonly tokenFile: string;
  readonly kubeconfig: string;
  readonly start: (args: readonly string[]) => Promise<ProcessResult>;
  /** Runs the plugin as client-go does, from the kubeconfig. */
  readonly exec: () => Promise<PrintedCredential>;
}

export function createNode(options: {
  readonly folder: string;
  /** How the program reaches what proves the machine. */
  readonly environment: Readonly<Record<string, string>>;
  readonly ahead: () => number;
  readonly signal: AbortSignal;
}): DemoNode {
  const { folder, environment, ahead, signal } = options;
  const program = join(folder, 'kubelet-authenticator');
  const [directory, cache] = [join(folder, 'kubernetes'), join(folder, 'cache')];
  mkdirSync(directory);
  const source = resolve(import.meta.dirname, '../../kubelet-authenticator/kubelet-authenticator.ts');
  // The program gets the clock of the demo, which may be ahead.
  const clock = 'const real = Date.now; Date.now = () => real() + Number(process.env.CLOCK_AHEAD);';
  const preload = `data:text/javascript,${encodeURIComponent(clock)}`;
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' --import '${preload}' '${source}' "$@"\n`, {
    mode: 0o755,
  });
  const kubeconfig = join(directory, 'kubelet.conf');

  async function start(file: string, args: readonly string[]): Promise<ProcessResult> {
    const env = {
      PATH: dirname(process.execPath),
      ...environment,
      CLOCK_AHEAD: String(ahead()),
      KUBERNETES_EXEC_INFO: JSON.stringify({
        apiVersion: 'client.authentication.k8s.io/v1',
        kind: 'ExecCredential',
        spec: { interactive: false },
      }),
    };
    const ran = await new Promise<ProcessResult>((done) => {
      const child = execFile(file, args, { env, signal, killSignal: 'SIGKILL' }, (error, stdout, stderr) =>
        done({ code: child.exitCode ?? error?.code ?? child.signalCode, stdout, stderr }),
      );
    });
    // The program may only be slow, so the message does not report a failed check.
    if (signal.aborted) {
      const timedOut = (signal.reason as Error).name === 'TimeoutError';
      const what = timedOut ? 'did not answer in time: a busy machine? Run it again.' : 'was interrupted.';
      throw new DemoFailure(`kubelet-authenticator ${what} Its standard error:\n${ran.stderr}`);
    }
    return ran;
  }

  return {
    program,
    directory,
    cache,
    kubeconfig,
    tokenFile: join(folder, 'token'),
    start: (args) => start(program, args),
    async exec() {
      const { users } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as {
        users: [{ user: { exec: { command: string; args: readonly string[] } } }];
      };
      const { command, args } = users[0].user.exec;
      const ran = await start(command, args);
      if (ran.code !== 0) throw new DemoFailure(`the plugin ended with ${ran.code}:\n${ran.stderr}`);
      const { status } = JSON.parse(ran.stdout) as { readonly status: Readonly<Record<string, string>> };
      return {
        certificatePem: status['clientCertificateData'] ?? '',
        keyPem: status['clientKeyData'] ?? '',
        askAgainAt: status['expirationTimestamp'] ?? '',
        text: ran.stdout,
        stderr: ran.stderr,
      };
    },
  };
}
