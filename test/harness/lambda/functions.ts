/**
 * The functions that a deployment makes, to be run one by one: their code as `cdk synth` wrote it, their environment as
 * CloudFormation resolved it, their tables and keys in an emulated AWS.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { callerRoleName, functionName } from '../../../core/configuration/resolve/deployment.ts';
import type { Service as DeployedService } from '../../../lib/functions.ts';
import {
  audience,
  cluster,
  issuer,
  jwks,
  makeToken,
  nowSeconds,
  subject,
} from '../../unit/lambdas/authorizer/tokens.ts';
import { kubeadmRequests } from '../../unit/core/kubeadm/requests.ts';
import { eventOf } from '../../unit/lambdas/authorizer/case.ts';
import type { TokenSpec } from '../../unit/lambdas/authorizer/tokens.ts';
import { csrFixture, eventFixture } from '../../unit/lambdas/sign/stack.ts';
import { calledBy, iamAuthorizer, sessionArn } from './callers.ts';
import { startAwsProxy, type AwsProxy } from '../aws/proxy.ts';
import { createStack, publishAssets, synthesise } from '../aws/sdk-stacks.ts';
import type { Template } from '../aws/sdk-stacks.ts';
import { emulatedRegion } from '../aws/emulator.ts';
import { runtimeAccount, startLambda, type LambdaEnvironment } from './runtime.ts';
import { account, machineRules, nodeRequest, nodeSigner, startMachines, type Machines } from './machines.ts';
import { startMiniStack } from '../aws/ministack.ts';
import { temporaryFolder } from '../processes/processes.ts';
import { makeRequest } from '../x509/requests.ts';

const clientSigner = 'kubernetes.io/kube-apiserver-client';
const awsClients = 'bench/programs/bare/kms-dynamodb.ts';

export interface Subject {
  /** An ordinary one, and another each time: a request to sign, a token to check, a question. */
  readonly event: () => unknown;
  /** What the benchmark sets beside it: a bundle of nothing but the libraries it needs. */
  readonly bare: { readonly libraries: string; readonly entry: string; readonly event: () => unknown };
}

/** Every function there is, once: the suite under Lambda's runtime fails when synth makes one that is not here. */
export const subjects = {
  sign: {
    event: () => signEvent(clientRequest()),
    bare: { libraries: 'KMS and DynamoDB clients', entry: awsClients, event: () => ({ as: 'sign' }) },
  },
  attest: {
    event: () => attestEvent(nodeRequest(cluster).object),
    bare: {
      libraries: 'EC2 and DynamoDB clients',
      entry: 'bench/programs/bare/ec2-dynamodb.ts',
      event: () => ({ once: randomUUID() }),
    },
  },
  ca: {
    event: () => ({ action: 'show' }),
    bare: { libraries: 'KMS and DynamoDB clients', entry: awsClients, event: () => ({ as: 'ca' }) },
  },
  kubeadm: {
    event: () => ({
      certificate: 'admin.conf',
      csr: makeRequest(kubeadmRequests['admin.conf']).pem,
      by: 'jo',
      dryRun: true,
    }),
    bare: { libraries: 'KMS and DynamoDB clients', entry: awsClients, event: () => ({ as: 'ca' }) },
  },
  authorizer: {
    event: () => eventOf(freshToken()),
    bare: { libraries: 'jose', entry: 'bench/programs/bare/jose.ts', event: () => ({ token: freshToken(), jwks }) },
  },
} as const satisfies Record<DeployedService, Subject>;
export type Service = keyof typeof subjects;
export const services = Object.keys(subjects) as Service[];

export { cluster, subject };

export interface DeployedFunction {
  readonly name: string;
  readonly handler: string;
  /** The folder with its code. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutSeconds: number;
  readonly memoryMegabytes: number;
}

export interface DeployedFunctions {
  readonly functions: Readonly<Record<Service, DeployedFunction>>;
  /** The names of all functions in the templates. */
  readonly synthesised: readonly string[];
  /** What AWS is asked by the functions started here. */
  readonly aws: AwsProxy;
  /** A new execution environment, whose handler starts with the first call. Stopped with the rest. */
  start(service: Service): Promise<LambdaEnvironment>;
  stop(): Promise<void>;
}

/** Made when it is needed: it has a certificate of the fake region. */
const configuration = () => ({
  version: 1,
  clusters: {
    [cluster]: {
      cas: { ca: { subject: { commonName: 'prod ca' } } },
      profiles: {
        [clientSigner]: { ca: 'ca', maxTtl: '1d' },
        [nodeSigner]: { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'] } },
      },
      attestation: machineRules(cluster),
      kubeadm: { cas: { kubernetes: 'ca' }, nodes: { 'cp-1': ['10.0.0.11'] } },
      access: {
        iam: { principals: [`arn:aws:iam::${account}:role/relay`] },
        jwt: { issuer, audience, subjects: [subject], jwks: JSON.stringify(jwks) },
      },
      aws: { account, region: emulatedRegion },
    },
  },
});

/** The stacks without the custom resource: no CA has been made, and nothing has run, when this resolves. */
export async function deployFunctions(): Promise<DeployedFunctions> {
  const assembly = synthesise(JSON.stringify(configuration()));
  const folder = temporaryFolder('functions');
  const emulator = await startMiniStack({ auth: false });
  const lambda = new LambdaClient(emulator.client);
  const started: LambdaEnvironment[] = [];
  let aws: AwsProxy | undefined;
  let machines: Machines | undefined;
  const stop = async (): Promise<void> => {
    for (const each of started) await each.stop();
    lambda.destroy();
    await aws?.close();
    await machines?.stop();
    await emulator.stop();
    folder.remove();
  };
  try {
    await publishAssets(emulator, assembly);
    for (const [name, template] of assembly.templates) await createStack(emulator, name, withoutCas(template));
    const proxy = (aws = await startAwsProxy(emulator.url));
    machines = await startMachines(emulator.client.credentials);
    const elsewhere = machines.environment;

    const resources = [...assembly.templates.values()].flatMap(({ Resources }) => Object.values(Resources));
    const codeOf = (name: string): ReadonlyMap<string, Buffer> => {
      const made = resources.find(({ Properties }) => Properties?.['FunctionName'] === name);
      const key = (made?.Properties?.['Code'] as { readonly S3Key?: string } | undefined)?.S3Key ?? '';
      const files = assembly.code.get(key);
      if (files === undefined) throw new Error(`there is no code for ${name}`);
      return files;
    };
    const read = async (service: Service): Promise<DeployedFunction> => {
      const name = functionName(cluster, service);
      const made = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName: name }));
      const at = join(folder.path, service);
      mkdirSync(at);
      for (const [file, content] of codeOf(name)) writeFileSync(join(at, file), content);
      return {
        name,
        handler: made.Handler ?? '',
        folder: at,
        environment: {
          ...emulator.environment,
          // A resolved one: nothing in it may still be for CloudFormation to say.
          ...made.Environment?.Variables,
          AWS_ENDPOINT_URL: proxy.url,
          ...(service === 'attest' ? elsewhere : {}),
        },
        timeoutSeconds: made.Timeout ?? 0,
        memoryMegabytes: made.MemorySize ?? 0,
      };
    };
    const functions = Object.fromEntries(
      await Promise.all(services.map(async (service) => [service, await read(service)] as const)),
    ) as Record<Service, DeployedFunction>;
    return {
      functions,
      synthesised: resources.flatMap(({ Type, Properties }) =>
        Type === 'AWS::Lambda::Function' ? [String(Properties?.['FunctionName'])] : [],
      ),
      aws: proxy,
      async start(service) {
        const { name, ...rest } = functions[service];
        const environment = await startLambda({ functionName: name, ...rest });
        started.push(environment);
        return environment;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function withoutCas(template: Template): Template {
  const kept = Object.entries(template.Resources).filter(([, { Type }]) => Type !== 'Custom::CountersignCas');
  return { ...template, Resources: Object.fromEntries(kept) };
}

/** Of a signer that demands no proof; approved. */
export function clientRequest(spec: object = {}) {
  const request = { subject: { O: 'dev', CN: 'jane' } };
  return csrFixture({ request, spec: { signerName: clientSigner, ...spec } });
}

/** As an HTTP API hands it on. */
export function signEvent(object: object): unknown {
  return postEvent('sign', object);
}

export function attestEvent(request: object): unknown {
  return postEvent('attest', { request });
}

function postEvent(service: 'sign' | 'attest', body: object): unknown {
  const event = eventFixture({
    method: 'POST',
    path: `/v1/clusters/${cluster}/${service}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return calledBy(event, iamAuthorizer(sessionArn(callerRoleName(cluster), runtimeAccount)));
}

/** Valid now; `tokens.ts` has a time of its own. */
export function freshToken(spec: TokenSpec = {}): string {
  const shift = Math.floor(Date.now() / 1_000) - nowSeconds;
  const times = { exp: nowSeconds + shift + 3_000, iat: nowSeconds + shift - 60, nbf: nowSeconds + shift - 60 };
  return makeToken({ ...spec, claims: { ...times, ...spec.claims } });
}
