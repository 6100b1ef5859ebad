/** The two ways in that are not the default: a Function URL, and an HTTP API that takes tokens. */
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signAws } from '../../../conformance/sigv4.ts';
import {
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import type { Template } from '../../../harness/aws/sdk-stacks.ts';
import { onlyDeep } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';
import { askAtDoor, askBehind, byToken, doors } from './doors.ts';
import { logOf } from './function-logs.ts';

const { skip } = await requireTools('ministack');

describe.skipIf(skip)('a Function URL', () => {
  const door = doors.functionUrl;
  let deployment: MiniStackDeployment;
  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: door.settings }));
  });
  afterAll(() => deployment?.stop());

  test('lets the caller role in, and neither who brings nothing nor the relay without that role', async () => {
    const issued = await askBehind(deployment, door, await door.authorize(deployment));
    expect(issued).toMatchObject({ status: 200, outcome: 'issued' });
    expect(await askBehind(deployment, door)).toMatchObject({ status: 403, outcome: null });
    const { region } = deployment.emulator.client;
    const relay = signAws({ region, credentials: await deployment.relay('demo') });
    const refused = await askBehind(deployment, door, relay);
    expect(refused).toMatchObject({ status: 403, outcome: null });
    expect(refused.text).toContain('not authorized to perform: lambda:InvokeFunctionUrl');
  });

  test('finding 2: is refused by the handler where nothing says who called, as MiniStack says it of none', async () => {
    const answer = await askAtDoor(deployment, door, await door.authorize(deployment));
    expect(answer).toMatchObject({ status: 403, outcome: 'forbidden' });
    expect(await logOf(deployment)).toContain('"caller":"unnamed"');
  });

  test('finding 2: answers another role of the account with 403, from the handler', async () => {
    const { emulator } = deployment;
    const { region } = emulator.client;
    const arn = await createRole(emulator, 'deployer', 'lambda:InvokeFunctionUrl', 'lambda:InvokeFunction');
    const credentials = await deployment.assume(arn, await deployment.relay('demo'));
    const answer = await askBehind(deployment, door, signAws({ region, credentials }));
    expect(answer).toMatchObject({ status: 403, outcome: 'forbidden' });
    expect(await logOf(deployment)).toContain('"callerPrincipal":"arn:aws:sts::000000000000:assumed-role/deployer"');
  });

  /** What comes this way says itself who it is from. */
  test('is the only way to the function for the caller role', async () => {
    await expect(invoke(deployment)).rejects.toThrow('not authorized to perform: lambda:InvokeFunction ');
  });

  test.each(onlyDeep)('is so by the condition of its permission', async () => {
    const careless = await deployOnMiniStack(synthesiseClusters({ demo: door.settings }), {
      change: withoutCondition('OnlyByUrl'),
    });
    try {
      await expect(invoke(careless)).resolves.toMatchObject({ StatusCode: 200 });
    } finally {
      await careless.stop();
    }
  });
});

describe.skipIf(skip)('an HTTP API for tokens', () => {
  const door = doors.tokens;
  let deployment: MiniStackDeployment;
  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: door.settings }));
  });
  afterAll(() => deployment?.stop());

  test('lets in who brings a token of the subject for the audience', async () => {
    expect(await askBehind(deployment, door, await byToken())).toMatchObject({ status: 200, outcome: 'issued' });
  });

  const now = Math.floor(Date.now() / 1_000);
  test.each<[string, number, Readonly<Record<string, unknown>> | undefined]>([
    ['no token', 401, undefined],
    ['a token for another audience', 403, { aud: ['https://kubernetes.default.svc'] }],
    ['a token of another issuer', 403, { iss: 'https://elsewhere.example.com' }],
    ['a token of another account', 403, { sub: 'system:serviceaccount:default:other' }],
    ['a token that has expired', 403, { iat: now - 1_200, nbf: now - 1_200, exp: now - 600 }],
    ['a token that lives for a day', 403, { exp: now + 86_400 }],
  ])('does not pass on a call with %s', async (_, status, claims) => {
    const authorize = claims === undefined ? undefined : await byToken(claims);
    expect(await askBehind(deployment, door, authorize)).toMatchObject({ status, outcome: null });
  });
});

/** By the caller role, past its URL. */
async function invoke(deployment: MiniStackDeployment) {
  const credentials = await deployment.caller('demo');
  const lambda = new LambdaClient({ ...deployment.emulator.client, credentials, maxAttempts: 1 });
  try {
    return await lambda.send(new InvokeCommand({ FunctionName: 'countersign-demo-sign', Payload: '{}' }));
  } finally {
    lambda.destroy();
  }
}

function withoutCondition(sid: string) {
  return (template: Template): Template =>
    JSON.parse(JSON.stringify(template), (_, value: unknown) => {
      if ((value as { Sid?: unknown } | null)?.Sid !== sid) return value;
      const { Condition: _condition, ...rest } = value as Readonly<Record<string, unknown>>;
      return rest;
    }) as Template;
}
