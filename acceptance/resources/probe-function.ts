/** The probe (acceptance/probe) as code of a function. */
import {
  CreateFunctionCommand,
  DeleteFunctionCommand,
  InvokeCommand,
  waitUntilFunctionActiveV2,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda';
import { resolve } from 'node:path';
import { undefinedIf } from '../../cli/aws/calls.ts';
import { bundle } from '../../lib/bundle.ts';
import type { ProbeCall } from '../probe/probe.ts';
import type { Site } from '../world/step.ts';
import { removeResource } from './retained.ts';
import { zip } from './zip.ts';

export function probeCode(): Buffer {
  const root = resolve(import.meta.dirname, '../..');
  return zip(bundle({ root, entry: 'acceptance/probe/probe.ts', constants: {} }).files);
}

/** Registers its removal first. Resolves to its name. */
export async function createProbe(site: Site, role: string, of: 'sign' | 'attest'): Promise<string> {
  const { aws, undo, place } = site;
  const FunctionName = `${site.name}-probe-${of}`;
  undo.register({
    what: `function ${FunctionName}`,
    command: `aws lambda delete-function --function-name ${FunctionName} --region ${place.region}`,
    async undo() {
      const deleted = aws.lambda.send(new DeleteFunctionCommand({ FunctionName }));
      await deleted.catch(undefinedIf('ResourceNotFoundException'));
      // Lambda makes its log group if the role may.
      return removeResource(site, 'AWS::Logs::LogGroup', `/aws/lambda/${FunctionName}`);
    },
  });
  await aws.lambda.send(
    new CreateFunctionCommand({
      FunctionName,
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Handler: 'index.handler',
      Timeout: 25,
      MemorySize: 512,
      Role: role,
      Code: { ZipFile: probeCode() },
    }),
  );
  await untilReady(site, FunctionName);
  return FunctionName;
}

export async function untilReady({ aws, pollMilliseconds }: Site, FunctionName: string): Promise<void> {
  const delay = Math.max(1, Math.round(pollMilliseconds / 1_000));
  const waiting = { client: aws.lambda, maxWaitTime: 120, minDelay: delay, maxDelay: delay };
  await waitUntilFunctionActiveV2(waiting, { FunctionName });
  await waitUntilFunctionUpdatedV2(waiting, { FunctionName });
}

/** For each call `permitted`, or the name of AWS's error. */
export async function askProbe(
  { aws }: Site,
  FunctionName: string,
  calls: readonly ProbeCall[],
): Promise<readonly string[]> {
  const { Payload: payload, FunctionError: error } = await aws.lambda.send(
    new InvokeCommand({ FunctionName, Payload: Buffer.from(JSON.stringify({ calls })) }),
  );
  const text = Buffer.from(payload ?? []).toString('utf8');
  if (error !== undefined) throw new Error(`the probe failed: ${text.slice(0, 300)}`);
  return JSON.parse(text) as readonly string[];
}
