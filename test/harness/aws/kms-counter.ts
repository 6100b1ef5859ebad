import { join } from 'node:path';
import { compileCache } from '../processes/processes.ts';
import { startAwsProxy, type AwsProxy } from './proxy.ts';
import type { Emulator } from './emulator.ts';
import { startLocalStack } from './localstack.ts';
import { startMiniStack } from './ministack.ts';

export interface CountedEmulator {
  readonly emulator: Emulator;
  /** Between the functions and KMS, and nowhere else: what a test itself asks of KMS is not counted. */
  readonly kms: AwsProxy;
  stop(): Promise<void>;
}

const runtime = join(import.meta.dirname, '../../tools/localstack/executor/runtime.mjs');

/** Only for a LocalStack of ours. `functions`: what they find in their environment beside what they are deployed with. */
export function startCountedLocalStack(functions: Readonly<Record<string, string>> = {}): Promise<CountedEmulator> {
  return startCounted((counting) => {
    const variables = [...counting, ...Object.entries({ ...compileCache(), ...functions })];
    const environment = variables.map((each) => each.join('='));
    // It gives functions nothing of its own environment.
    return startLocalStack({ lambdaRuntime: ['/usr/bin/env', ...environment, process.execPath, runtime] });
  });
}

/** With signatures and permissions checked, those of the calls through the proxy too. */
export function startCountedMiniStack(): Promise<CountedEmulator> {
  return startCounted((environment) =>
    startMiniStack({ auth: true, functionEnvironment: Object.fromEntries(environment) }),
  );
}

/**
 * An emulator whose functions reach KMS through a proxy that counts. They are deployed as they are: the SDK takes the
 * address from the environment, and whatever runs the functions puts it there.
 */
async function startCounted(
  start: (functionEnvironment: readonly (readonly [string, string])[]) => Promise<Emulator>,
): Promise<CountedEmulator> {
  const upstream = Promise.withResolvers<string>();
  const kms = await startAwsProxy(upstream.promise);
  try {
    const emulator = await start([['AWS_ENDPOINT_URL_KMS', kms.url]]);
    upstream.resolve(emulator.url);
    return {
      emulator,
      kms,
      async stop() {
        await emulator.stop();
        await kms.close();
      },
    };
  } catch (error) {
    await kms.close();
    throw error;
  }
}

/** Digests that KMS was asked to sign, in hex, and how often each. */
export function signedDigests({ calls }: AwsProxy): Map<string, number> {
  const counts = new Map<string, number>();
  for (const call of calls) {
    const digest = digestIn(call);
    if (digest !== undefined) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  }
  return counts;
}

/** In hex; undefined for calls that are not for a signature. */
export function digestIn({ operation, body }: AwsProxy['calls'][number]): string | undefined {
  if (operation !== signOperation) return undefined;
  const { Message: message } = JSON.parse(body.toString('utf8')) as { Message: string };
  return Buffer.from(message, 'base64').toString('hex');
}

export const signOperation = 'TrentService.Sign';
