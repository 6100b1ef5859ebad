import { ScheduleKeyDeletionCommand, SignCommand } from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { environmentNames } from '../../adapters/lambda/environment.ts';
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import type { ProbeCall } from '../probe/probe.ts';
import type { Limit } from '../world/emulator.ts';
import { named } from '../world/names.ts';
import { askProbe, createProbe, probeCode, untilReady } from './probe-function.ts';
import { refusedBy } from '../world/recorder.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Site, Step } from '../world/step.ts';

/**
 * The rights of the sign role hold in the sign function only. So the probe is tried twice: in the place of the sign function's code,
 * and in a function of its own with the same role. Afterwards that cluster signs nothing any more: this is the last step.
 */
export const rights: Step = {
  id: 'rights',
  title: 'What the sign role may do with keys and tables',
  minute: 14,
  shows:
    'the sign role signs only digests, writes no CA, and is of no use in another function; a transaction is judged item by item; others neither sign nor delete',
  needs: ['deploy'],
  statements: (place) => [
    {
      sid: 'Probe',
      actions: ['lambda:CreateFunction', 'lambda:GetFunction', 'lambda:DeleteFunction', 'lambda:InvokeFunction'],
      resources: named('lambda', place, 'function:').slice(0, 1),
    },
    {
      sid: 'ProbeAsSignFunction',
      actions: ['lambda:GetFunction', 'lambda:GetFunctionConfiguration', 'lambda:UpdateFunctionCode'],
      resources: named('lambda', place, 'function:').slice(1),
    },
    {
      sid: 'ProbeWithSignRole',
      actions: ['iam:PassRole'],
      resources: named('iam', place, 'role/').slice(1),
    },
  ],
  async run(site) {
    const { plan, aws } = site;
    const signFunction = functionName(plan.url, 'sign');
    const { Role: role = '', Environment: environment } = await aws.lambda.send(
      new GetFunctionConfigurationCommand({ FunctionName: signFunction }),
    );
    const variables = environment?.Variables ?? {};
    const { ca: key = '' } = JSON.parse(variables[environmentNames.caKeys] ?? '{}') as { ca?: string };
    const tries = triesOn(site, key, variables[environmentNames.certificatesTable] ?? '');

    const other = await createProbe(site, role);
    const refused = tries.map((each) => ({ ...each, expected: 'refused', limit: 'source-function' }) as const);
    await tryAll(site, other, 'another function with the sign role', refused);

    await aws.lambda.send(new UpdateFunctionCodeCommand({ FunctionName: signFunction, ZipFile: probeCode() }));
    await untilReady(site, signFunction);
    await tryAll(site, signFunction, 'the sign function', tries);

    const command = new SignCommand({
      KeyId: key,
      Message: Buffer.alloc(32, 1),
      MessageType: 'DIGEST',
      SigningAlgorithm: 'ECDSA_SHA_256',
    });
    await site.check(
      'refused: the login, which made the key, signs with it',
      () => refusedBy(aws.kms.send(command)),
      'permissions',
    );
    const relay = aws.as(await assume(site, roleArn(site, plan.relay)));
    await site.check(
      'refused: a role that is not among the deleters schedules the deletion of the key',
      () => refusedBy(relay.kms.send(new ScheduleKeyDeletionCommand({ KeyId: key, PendingWindowInDays: 30 }))),
      'permissions',
    );
  },
};

interface Try {
  readonly what: string;
  readonly call: ProbeCall;
  readonly expected: 'permitted' | 'refused';
  readonly limit?: Limit;
}

function triesOn({ name }: Site, KeyId: string, TableName: string): readonly Try[] {
  const input = {
    KeyId,
    Message: Buffer.alloc(32, 1).toString('base64'),
    MessageType: 'DIGEST',
    SigningAlgorithm: 'ECDSA_SHA_256',
  };
  const Item = (pk: string) => ({ pk: { S: pk } });
  const put = (pk: string): ProbeCall => ({ call: 'PutItem', input: { TableName, Item: Item(pk) } });
  const both = (...pks: readonly string[]): ProbeCall => ({
    call: 'TransactWriteItems',
    input: { TransactItems: pks.map((pk) => ({ Put: { TableName, Item: Item(pk) } })) },
  });
  const requestAndKey: ProbeCall = {
    call: 'TransactWriteItems',
    input: {
      TransactItems: [
        { Put: { TableName, Item: Item(`uid#${name}-5`) } },
        {
          Update: {
            TableName,
            Key: Item(`spki#${name}`),
            UpdateExpression: 'SET seen = :seen',
            ExpressionAttributeValues: { ':seen': { S: name } },
          },
        },
      ],
    },
  };
  const raw: ProbeCall = { call: 'Sign', input: { ...input, MessageType: 'RAW' } };
  return [
    { what: 'a digest', call: { call: 'Sign', input }, expected: 'permitted' },
    { what: 'a message instead of a digest', call: raw, expected: 'refused', limit: 'kms-conditions' },
    { what: 'the record of a request', call: put(`uid#${name}`), expected: 'permitted' },
    { what: 'a CA', call: put('ca#other'), expected: 'refused', limit: 'leading-keys' },
    { what: 'two requests at once', call: both(`uid#${name}-1`, `uid#${name}-2`), expected: 'permitted' },
    // No single right covers both keys, so DynamoDB must judge item by item: each claim of a machine is such a transaction.
    { what: 'a request and its key at once', call: requestAndKey, expected: 'permitted' },
    {
      what: 'a request and a CA at once',
      call: both(`uid#${name}-3`, 'ca#another'),
      expected: 'refused',
      limit: 'leading-keys',
    },
  ];
}

async function tryAll(site: Site, probe: string, who: string, tries: readonly Try[]): Promise<void> {
  const answers = await askProbe(
    site,
    probe,
    tries.map(({ call }) => call),
  );
  for (const [index, { what, call, expected, limit }] of tries.entries())
    await site.check(
      `${expected}: ${who}, ${call.call} of ${what}`,
      async () => {
        const answer = answers[index] ?? 'no answer';
        const as = answer === 'permitted' ? answer : /AccessDenied/.test(answer) ? 'refused' : 'otherwise';
        if (as !== expected) throw new Error(answer);
        return answer;
      },
      limit,
    );
}
