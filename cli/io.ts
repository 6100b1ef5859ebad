/** All that the command line touches of the world, so that tests can hand in another one. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { CommandFailure, exitCodes } from './exit.ts';
import type { FunctionCall } from './function-call.ts';
import type { ApiAnswer, Instant, JsonObject } from '../core/ports.ts';

export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  now(): Instant;
  fileExists(path: string): boolean;
  /** `-` is standard input. Rejects with Node's error when it cannot be read. */
  read(path: string): Promise<Uint8Array>;
  /** One request object of a cluster. Throws CommandFailure for an unusable login, anything else when the cluster does not answer. */
  fetchRequest(name: string, login: ClusterLogin): Promise<ApiAnswer<JsonObject>>;
  /** What a Lambda function gave. Throws CommandFailure when it cannot be called or failed. */
  callFunction(call: FunctionCall): Promise<unknown>;
}

export interface ClusterLogin {
  readonly kubeconfig: string;
  readonly context?: string;
}

const apiTimeoutMilliseconds = 30_000;

export function processIo(): Io {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    now: () => Date.now(),
    fileExists: existsSync,
    read: (path) => (path === '-' ? buffer(process.stdin) : readFile(path)),
    async fetchRequest(name, { kubeconfig, context }) {
      // The client library takes longer to load than all the rest of the command line: only for those who need it.
      const { connectKubernetes } = await import('../adapters/kubernetes-api.ts');
      const login = { kind: 'kubeconfig', path: kubeconfig, ...(context === undefined ? {} : { context }) } as const;
      let api;
      try {
        api = connectKubernetes(login);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new CommandFailure(exitCodes.configuration, `${kubeconfig}: ${message}`);
      }
      try {
        return await api.requests.get(name, AbortSignal.timeout(apiTimeoutMilliseconds));
      } finally {
        api.close();
      }
    },
    async callFunction(call) {
      // Likewise.
      const { callFunction } = await import('./function-call.ts');
      return callFunction(call);
    },
  };
}

/** Where kubectl looks: the flag, then the first file of KUBECONFIG, then ~/.kube/config. */
export function kubeconfigPath(flag: string | undefined, { environment }: Io): string {
  const fromEnvironment = environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  return flag ?? fromEnvironment ?? join(homedir(), '.kube', 'config');
}
