/** The real Io: files, clusters, AWS. Modules with heavy dependencies are loaded when a command needs them. */
import { maxInputBytes } from './runtime/io.ts';
import type { Io, ClusterLogin } from './runtime/io.ts';
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { CommandFailure, exitCodes } from './runtime/exit.ts';
import type { KubernetesApi } from '../adapters/kubernetes/api.ts';
import { errorMessage } from '../core/outcome/error-message.ts';

const apiTimeoutMilliseconds = 30_000;

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
      const { callFunction } = await import('./aws/function-call.ts');
      return callFunction(call);
    },
    fetchNodeNames: (login) => withCluster(login, (api, signal) => api.nodeNames(signal)),
    async openRegister(place) {
      const { openRegister } = await import('./register/open.ts');
      return openRegister(place, this);
    },
    async connectEc2() {
      const { ec2Endpoint, ec2Fleet } = await import('../adapters/aws/ec2.ts');
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
  // The client library takes longer to load than the rest of the command line, so only commands that need it load it.
  const { connectKubernetes } = await import('../adapters/kubernetes/api.ts');
  const login = { kind: 'kubeconfig', path: kubeconfig, ...(context === undefined ? {} : { context }) } as const;
  let api;
  try {
    api = connectKubernetes(login);
  } catch (error) {
    const message = errorMessage(error);
    throw new CommandFailure(exitCodes.configuration, `${kubeconfig}: ${message}`);
  }
  try {
    return await work(api, AbortSignal.timeout(apiTimeoutMilliseconds));
  } finally {
    api.close();
  }
}
