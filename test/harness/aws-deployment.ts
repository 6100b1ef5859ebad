import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { cdkOn } from './aws-cdk.ts';
import { startFunctionUrlProxy } from './aws-function-url.ts';
import { startCountedLocalStack, type CountedLocalStack } from './aws-kms-counter.ts';
import type { Emulator } from './emulator.ts';
import { temporaryFolder } from './processes.ts';

/** Cluster `demo` behind a Function URL, deployed by the ordinary `cdk` into a LocalStack of its own. */
export interface Deployment extends CountedLocalStack {
  /** Of the sign endpoint, without path, on loopback. */
  readonly url: string;
  /** Of the service stack. */
  readonly outputs: Readonly<Record<string, string>>;
  /** The countersign.yaml it was deployed from. */
  readonly configuration: string;
}

/** The CA has the name that the dev server gives its own. */
const configuration = `version: 1
clusters:
  demo:
    cas:
      ca: { subject: { commonName: demo ca } }
    profiles:
      kubernetes.io/kube-apiserver-client: { ca: ca, maxTtl: 1d }
      kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d }
      kubernetes.io/kubelet-serving: { ca: ca, maxTtl: 1d }
    # HTTP APIs exist in LocalStack by name only.
    frontDoor: functionUrl
    access:
      iam: { principals: ['arn:aws:iam::000000000000:role/relay'] }
    aws: { account: '000000000000', region: eu-central-1 }
`;

export async function deployOnLocalStack(): Promise<Deployment> {
  const folder = temporaryFolder('deployment');
  let stack: CountedLocalStack | undefined;
  try {
    const file = join(folder.path, 'countersign.yaml');
    writeFileSync(file, configuration);
    const counted = (stack = await startCountedLocalStack());
    const cdk = cdkOn(counted.emulator, { configuration: file, folder: folder.path });
    await cdk.bootstrap();
    const { demo: outputs = {} } = await cdk.deploy();
    await callCaFunction(counted.emulator, outputs['CaFunction'] ?? '', 'init');
    const proxy = await startFunctionUrlProxy(outputs['SignUrl'] ?? '', counted.emulator.url);
    return {
      ...counted,
      url: proxy.url,
      outputs,
      configuration: file,
      async stop() {
        await proxy.close();
        await counted.stop();
        folder.remove();
      },
    };
  } catch (error) {
    await stack?.stop();
    folder.remove();
    throw error;
  }
}

/**
 * As an operator does, with IAM's permission to invoke it. CloudFormation has done so already, except in LocalStack,
 * whose core passes over custom resources.
 */
export async function callCaFunction({ client }: Emulator, name: string, action: 'init' | 'show'): Promise<unknown> {
  const lambda = new LambdaClient(client);
  try {
    const { FunctionError: error, Payload: payload } = await lambda.send(
      new InvokeCommand({ FunctionName: name, Payload: JSON.stringify({ action }) }),
    );
    const text = Buffer.from(payload ?? []).toString('utf8');
    if (error !== undefined) throw new Error(`${name}: ${text}`);
    return JSON.parse(text) as unknown;
  } finally {
    lambda.destroy();
  }
}
