/** All that the command line touches of the world, so that tests can hand in another one. */
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { CommandFailure, exitCodes } from './exit.ts';
import type { FunctionCall } from './function-call.ts';
import type { OpenRegister, RegisterPlace } from './register-place.ts';
import type { Ec2Fleet } from '../core/attestation/aws-fleet.ts';
import type { KubernetesApi } from '../adapters/kubernetes-api.ts';
import type { ApiAnswer, Instant, JsonObject } from '../core/ports.ts';
import type { Ec2Endpoint } from '../core/attestation/aws-endpoints.ts';

export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
  /** Of whoever runs this, as the operating system knows him. */
  userName(): string;
  fileExists(path: string): boolean;
  /** `-` is standard input. Rejects with Node's error when it cannot be read, with code EFBIG beyond `maxInputBytes`. */
  read(path: string): Promise<Uint8Array>;
  /** One request object of a cluster. Throws CommandFailure for an unusable login, anything else when the cluster does not answer. */
  fetchRequest(name: string, login: ClusterLogin): Promise<ApiAnswer<JsonObject>>;
  /** What a Lambda function gave. Throws CommandFailure when it cannot be called or failed. */
  callFunction(call: FunctionCall): Promise<unknown>;
  /** Names of all nodes of a cluster; fails as `fetchRequest` does. */
  fetchNodeNames(login: ClusterLogin): Promise<ApiAnswer<readonly string[]>>;
  /** What attestation remembers of a cluster. Throws CommandFailure when it is not there. */
  openRegister(place: RegisterPlace): Promise<OpenRegister>;
  /** EC2 as seen by the operator who is logged in to AWS here. */
  connectEc2(): Promise<Ec2Fleet & Ec2Endpoint>;
}

export interface ClusterLogin {
  readonly kubeconfig: string;
  readonly context?: string;
}

const apiTimeoutMilliseconds = 30_000;
/** An object of a cluster is 3 MiB at most; a device or a pipe may never end. */
export const maxInputBytes = 8 * 1_048_576;

export function processIo(): Io {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    now: () => Date.now(),
    randomBytes,
    userName: () => userInfo().username,
    fileExists: existsSync,
    read: (path) => readInput(path),
    fetchRequest: (name, login) => withCluster(login, ({ requests }, signal) => requests.get(name, signal)),
    async callFunction(call) {
      // Likewise.
      const { callFunction } = await import('./function-call.ts');
      return callFunction(call);
    },
    fetchNodeNames: (login) => withCluster(login, (api, signal) => api.nodeNames(signal)),
    async openRegister(place) {
      const { openRegister } = await import('./register-open.ts');
      return openRegister(place, this);
    },
    async connectEc2() {
      const { ec2Endpoint, ec2Fleet } = await import('../adapters/ec2.ts');
      return { ...ec2Endpoint(), ...ec2Fleet() };
    },
  };
}

async function readInput(path: string): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of path === '-' ? process.stdin : createReadStream(path)) {
    length += (chunk as Buffer).length;
    if (length > maxInputBytes) throw Object.assign(new Error('the file is too large'), { code: 'EFBIG' });
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

async function withCluster<T>(
  { kubeconfig, context }: ClusterLogin,
  work: (api: KubernetesApi, signal: AbortSignal) => Promise<T>,
): Promise<T> {
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
    return await work(api, AbortSignal.timeout(apiTimeoutMilliseconds));
  } finally {
    api.close();
  }
}

/** Where kubectl looks: the flag, then the first file of KUBECONFIG, then ~/.kube/config. */
export function kubeconfigPath(flag: string | undefined, { environment }: Io): string {
  const fromEnvironment = environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  return flag ?? fromEnvironment ?? join(homedir(), '.kube', 'config');
}
