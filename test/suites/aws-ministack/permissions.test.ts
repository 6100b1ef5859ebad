/** Every permission that the stacks give is one that something here fails without, or stands in a table with its reason. */
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { describe, expect, test } from 'vitest';
import { httpClient } from '../../conformance/http-client.ts';
import { ask, questionFor } from '../../conformance/questions.ts';
import type { Template } from '../../harness/aws-sdk-stacks.ts';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../harness/aws-ministack-deployment.ts';
import { requireTools } from '../../tools/tools.ts';

const { skip } = await requireTools('ministack');
const assembly = skip ? undefined : synthesiseClusters('demo');

/** By permission, what is refused without it. */
const exercised = {
  'SignPolicy ReadRequestsAndCas dynamodb:GetItem': 'dynamodb:GetItem',
  'SignPolicy WriteRequests dynamodb:PutItem': 'dynamodb:PutItem',
  'SignPolicy WriteRequests dynamodb:UpdateItem': 'dynamodb:UpdateItem',
  'CaKeyca SignCertificates kms:Sign SignRole': 'kms:Sign',
  'CaKeyca PublicKey kms:GetPublicKey SignRole': 'kms:GetPublicKey',
  'CaPolicy KeepCas dynamodb:GetItem': 'dynamodb:GetItem',
  'CaPolicy KeepCas dynamodb:PutItem': 'dynamodb:PutItem',
  'CaKeyca SignCaCertificate kms:Sign CaRole': 'kms:Sign',
  'CaKeyca PublicKey kms:GetPublicKey CaRole': 'kms:GetPublicKey',
  'CallerPolicy CallOwnEndpoint execute-api:Invoke': 'execute-api:Invoke',
  'CallerRole - sts:AssumeRole role/relay-demo': 'sts:AssumeRole',
} as const;

const log = 'MiniStack writes the logs of functions without asking their role; without it Lambda writes none';
const service = 'MiniStack gives functions sessions of their roles without asking; Lambda could not run them';
/** For people and for CloudFormation, which MiniStack lets pass as the account itself. */
const administration = 'no function needs it; the account must, or nobody could ever look after the key';
const reviewed: Readonly<Record<string, string>> = {
  'SignPolicy WriteOwnLog logs:CreateLogStream': log,
  'SignPolicy WriteOwnLog logs:PutLogEvents': log,
  'CaPolicy WriteOwnLog logs:CreateLogStream': log,
  'CaPolicy WriteOwnLog logs:PutLogEvents': log,
  'SignRole - sts:AssumeRole lambda.amazonaws.com': service,
  'CaRole - sts:AssumeRole lambda.amazonaws.com': service,
  'CallerRole - sts:TagSession role/relay-demo': 'nobody here brings session tags; EKS Pod Identity does',
  ...Object.fromEntries(
    [
      'DescribeKey',
      'GetKeyPolicy',
      'ListKeyPolicies',
      'GetKeyRotationStatus',
      'ListResourceTags',
      'GetPublicKey',
      'PutKeyPolicy',
      'UpdateKeyDescription',
      'EnableKey',
      'DisableKey',
      'TagResource',
      'UntagResource',
      'ListGrants',
      'RevokeGrant',
      'CancelKeyDeletion',
    ].map((action) => [`CaKeyca Administration kms:${action} :root`, administration]),
  ),
};

describe.skipIf(skip)('permissions of the stacks', () => {
  test('are all exercised here, or reviewed', () => {
    const given = [...assembly!.templates.values()].flatMap((template) => edit(template).permissions);
    expect(given.toSorted()).toEqual([...Object.keys(exercised), ...Object.keys(reviewed)].toSorted());
  });

  test('are enough, all together', async () => {
    expect(await refusals()).toEqual([]);
  });

  test.each(Object.entries(exercised))('without %s, %s is refused', async (permission, action) => {
    expect(await refusals(permission)).toContain(action);
  });
});

/** Deploys without this permission and has one certificate issued; gives the actions that were refused on the way. */
async function refusals(permission?: string): Promise<readonly string[]> {
  let deployment: MiniStackDeployment | undefined;
  const said: string[] = [];
  try {
    deployment = await deployOnMiniStack(assembly!, { change: (template) => edit(template, permission).template });
    const answer = await issue(deployment);
    said.push(answer.text, await logOf(deployment));
    if (permission === undefined) expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
    else expect(answer.outcome).not.toBe('issued');
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('not authorized to perform')) throw error;
    said.push(error.message);
  } finally {
    await deployment?.stop();
  }
  const actions = said.join('\n').matchAll(/is not authorized to perform: ([a-z0-9-]+:\w+)/g);
  return [...new Set([...actions].map(([, action = '']) => action))];
}

interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Principal?: Readonly<Record<string, unknown>>;
}

/** All that is allowed, each action to each principal by itself; and the template without one of these. */
function edit(
  template: Template,
  without?: string,
): { readonly permissions: readonly string[]; readonly template: Template } {
  const permissions: string[] = [];
  const resources = Object.entries(template.Resources).flatMap(([id, resource]) => {
    const properties = { ...resource.Properties };
    for (const field of ['PolicyDocument', 'KeyPolicy', 'AssumeRolePolicyDocument']) {
      const document = properties[field] as { readonly Statement: readonly Statement[] } | undefined;
      if (document === undefined) continue;
      const statements = document.Statement.flatMap((statement) => {
        if (statement.Effect !== 'Allow') return [statement];
        // Apart, so that one can be left out; together they say the same.
        return partsOf(statement).flatMap(({ part, text }) => {
          const permission = `${id.replace(/[0-9A-F]{8}$/, '')} ${text}`;
          permissions.push(permission);
          return permission === without ? [] : [part];
        });
      });
      if (statements.length === 0 && field === 'PolicyDocument') return [];
      properties[field] = { ...document, Statement: statements };
    }
    return [[id, { ...resource, Properties: properties }] as const];
  });
  return { permissions, template: { ...template, Resources: Object.fromEntries(resources) } };
}

function partsOf(statement: Statement): { readonly part: Statement; readonly text: string }[] {
  const { Sid: sid = '-', Action: action, Principal: principal } = statement;
  return [action].flat().flatMap((each) => {
    if (principal === undefined) return [{ part: { ...statement, Action: each }, text: `${sid} ${each}` }];
    return Object.entries(principal).flatMap(([kind, who]) =>
      [who].flat().map((one: unknown) => ({
        part: { ...statement, Action: each, Principal: { [kind]: one } },
        text: `${sid} ${each} ${nameOf(one)}`,
      })),
    );
  });
}

function nameOf(principal: unknown): string {
  const text = JSON.stringify(principal);
  return /(SignRole|CaRole|:root|role\/[\w-]+|[a-z]+\.amazonaws\.com)/.exec(text)?.[1] ?? text;
}

async function issue(
  deployment: MiniStackDeployment,
): Promise<{ status: number; outcome: string | null; text: string }> {
  const { region } = deployment.emulator.client;
  const credentials = await deployment.caller('demo');
  const signer = new SignatureV4({ service: 'execute-api', region, credentials, sha256: Sha256 });
  const client = httpClient({
    connect: { host: '127.0.0.1', port: deployment.emulator.port },
    async authorize({ method, url, headers, body }) {
      const { host = url.host, 'content-type': type = '' } = headers;
      const { protocol, hostname, pathname: path } = url;
      const signed = { host, 'content-type': type };
      return (await signer.sign({ method, protocol, hostname, path, query: {}, headers: signed, body })).headers;
    },
  });
  try {
    const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: 'suite', groups: [] }));
    const answer = await client.fetch(`${deployment.outputs['demo']?.['SignUrl']}/sign`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Uint8Array(Buffer.from(JSON.stringify(object))),
      signal: AbortSignal.timeout(60_000),
      redirect: 'manual',
    });
    const text = Buffer.from(await answer.arrayBuffer()).toString();
    return { status: answer.status, outcome: answer.headers.get('x-countersign-outcome'), text };
  } finally {
    client.close();
  }
}

/** What the functions wrote. The answer itself says nothing about permissions: that is for operators. */
async function logOf({ emulator }: MiniStackDeployment): Promise<string> {
  const { region, credentials } = emulator.client;
  const signer = new SignatureV4({ service: 'logs', region, credentials, sha256: Sha256 });
  async function ask<T>(operation: string, input: object): Promise<T> {
    const { host, hostname, protocol } = new URL(emulator.url);
    const target = `Logs_20140328.${operation}`;
    const headers = { host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target };
    const body = JSON.stringify(input);
    const signed = await signer.sign({ method: 'POST', protocol, hostname, path: '/', query: {}, headers, body });
    const answer = await fetch(emulator.url, { method: 'POST', headers: signed.headers, body });
    if (!answer.ok) throw new Error(`${operation}: ${answer.status}`);
    return (await answer.json()) as T;
  }
  const { logGroups } = await ask<{ logGroups: { logGroupName: string }[] }>('DescribeLogGroups', {});
  const lines: string[] = [];
  for (const { logGroupName } of logGroups) {
    const { events } = await ask<{ events: { message: string }[] }>('FilterLogEvents', { logGroupName });
    lines.push(...events.map(({ message }) => message));
  }
  return lines.join('\n');
}
