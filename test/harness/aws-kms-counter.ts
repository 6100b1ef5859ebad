import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startAwsProxy, type AwsProxy } from './aws-proxy.ts';
import type { Emulator } from './emulator.ts';
import { startLocalStack } from './localstack.ts';
import { temporaryFolder } from './processes.ts';

export interface CountedLocalStack {
  readonly emulator: Emulator;
  /** Between the functions and KMS, and nowhere else: what a test itself asks of KMS is not counted. */
  readonly kms: AwsProxy;
  stop(): Promise<void>;
}

const runtime = join(import.meta.dirname, '../tools/localstack/executor/runtime.mjs');

/**
 * A LocalStack whose functions reach KMS through a proxy that counts. They are deployed as they are: the SDK takes the
 * address from the environment, and the runtime puts it there. Only for a LocalStack of ours.
 */
export async function startCountedLocalStack(): Promise<CountedLocalStack> {
  const folder = temporaryFolder('kms-counter');
  // The proxy needs the port of a LocalStack that has been told how functions are run: they look it up here.
  const address = join(folder.path, 'kms-address');
  const withAddress = 'AWS_ENDPOINT_URL_KMS="$(cat "$0")" && export AWS_ENDPOINT_URL_KMS && exec "$@"';
  const emulator = await startLocalStack({
    lambdaRuntime: ['/bin/sh', '-c', withAddress, address, process.execPath, runtime],
  });
  const kms = await startAwsProxy(emulator.url);
  writeFileSync(address, kms.url);
  return {
    emulator,
    kms,
    async stop() {
      await emulator.stop();
      await kms.close();
      folder.remove();
    },
  };
}

/** Digests that KMS was asked to sign, in hex, and how often each. */
export function signedDigests({ calls }: AwsProxy): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { operation, body } of calls) {
    if (operation !== signOperation) continue;
    const { Message: message } = JSON.parse(body.toString('utf8')) as { Message: string };
    const digest = Buffer.from(message, 'base64').toString('hex');
    counts.set(digest, (counts.get(digest) ?? 0) + 1);
  }
  return counts;
}

export const signOperation = 'TrentService.Sign';
