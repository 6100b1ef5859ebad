import { ScheduleKeyDeletionCommand, SignCommand } from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { environmentNames } from '../../adapters/lambda/environment.ts';
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import type { ProbeCall } from '../probe/probe.ts';
import type { Limit } from '../world/emulator.ts';
import { named } from '../world/names.ts';
import { askProbe, createProbe, probeCode, untilReady } from '../resources/probe-function.ts';
import { refusedBy } from '../world/recorder.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Site, Step } from '../world/step.ts';

/**
 * The rights of these roles hold in their own functions only. So the probe is tried twice: in the place of the function's code, and
 * in a function of its own with the same role. Afterwards no cluster works any more: this is the last step.
 */
export const rights: Step = {
  id: 'rights',
  title: 'What the roles of sign and attest may do with keys and tables',
  minute: 40,
  shows:
    'the sign role signs only digests and writes no CA; the attest role signs nothing, and writes neither locks nor the list of machines; in another function both are of no use; a transaction is judged item by item; others neither sign nor delete',
  needs: ['deploy'],
  statements: (place) => [
    {
      sid: 'Probe',
      actions: ['lambda:CreateFunction', 'lambda:GetFunction', 'lambda:DeleteFunction', 'lambda:InvokeFunction'],
      resources: named('lambda', place, 'function:').slice(0, 1),
    },
    {
      sid: 'ProbeInFunctions',
      actions: ['lambda:GetFunction', 'lambda:GetFunctionConfiguration', 'lambda:UpdateFunctionCode'],
      resources: named('lambda', place, 'function:').slice(1),
    },
    {
      sid: 'ProbeWithRoles',
      actions: ['iam:PassRole'],
      resources: named('iam', place, 'role/').slice(1),
    },
  ],
  async run(site) {
    const { plan, aws } = site;
    const sign = await probed(site, functionName(plan.url, 'sign'));
    const { ca: key = '' } = JSON.parse(sign.variables[environmentNames.caKeys] ?? '{}') as { ca?: string };
    const ledger = sign.variables[environmentNames.certificatesTable] ?? '';
    await tryBoth(site, 'sign', sign, triesOfSign(site, key, ledger));

    const attest = await probed(site, functionName(plan.api, 'attest'));
    const records = attest.variables[environmentNames.attestationsTable] ?? '';
    await tryBoth(site, 'attest', attest, triesOfAttest(site, key, records, ledger));

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

interface Probed {
  readonly name: string;
  readonly role: string;
  readonly variables: Readonly<Record<string, string>>;
}

async function probed({ aws }: Site, name: string): Promise<Probed> {
  const { Role: role = '', Environment: environment } = await aws.lambda.send(
    new GetFunctionConfigurationCommand({ FunctionName: name }),
  );
  return { name, role, variables: environment?.Variables ?? {} };
}

/** In another function, where everything is refused, and then in the place of the function's own code. */
async function tryBoth(
  site: Site,
  service: 'sign' | 'attest',
  { name, role }: Probed,
  tries: readonly Try[],
): Promise<void> {
  const other = await createProbe(site, role, service);
  const refused = tries.map((each) => ({ ...each, expected: 'refused', limit: 'source-function' }) as const);
  await tryAll(site, other, `another function with the ${service} role`, refused);

  await site.aws.lambda.send(new UpdateFunctionCodeCommand({ FunctionName: name, ZipFile: probeCode() }));
  await untilReady(site, name);
  await tryAll(site, name, `the ${service} function`, tries);
}

function signWith(KeyId: string, MessageType = 'DIGEST'): ProbeCall {
  const Message = Buffer.alloc(32, 1).toString('base64');
  return { call: 'Sign', input: { KeyId, Message, MessageType, SigningAlgorithm: 'ECDSA_SHA_256' } };
}

/** Puts one item, or several in one transaction. */
function put(TableName: string, ...keys: readonly string[]): ProbeCall {
  const puts = keys.map((pk) => ({ Put: { TableName, Item: { pk: { S: pk } } } }));
  const [only, ...more] = puts;
  if (only !== undefined && more.length === 0) return { call: 'PutItem', input: only.Put };
  return { call: 'TransactWriteItems', input: { TransactItems: puts } };
}

function triesOfSign({ name }: Site, key: string, table: string): readonly Try[] {
  const requestAndKey: ProbeCall = {
    call: 'TransactWriteItems',
    input: {
      TransactItems: [
        { Put: { TableName: table, Item: { pk: { S: `uid#${name}-5` } } } },
        {
          Update: {
            TableName: table,
            Key: { pk: { S: `spki#${name}` } },
            UpdateExpression: 'SET seen = :seen',
            ExpressionAttributeValues: { ':seen': { S: name } },
          },
        },
      ],
    },
  };
  return [
    { what: 'a digest', call: signWith(key), expected: 'permitted' },
    {
      what: 'a message instead of a digest',
      call: signWith(key, 'RAW'),
      expected: 'refused',
      limit: 'kms-conditions',
    },
    { what: 'the record of a request', call: put(table, `uid#${name}`), expected: 'permitted' },
    { what: 'a CA', call: put(table, 'ca#other'), expected: 'refused', limit: 'leading-keys' },
    { what: 'two requests at once', call: put(table, `uid#${name}-1`, `uid#${name}-2`), expected: 'permitted' },
    // No single right covers both keys, so DynamoDB must judge item by item.
    { what: 'a request and its key at once', call: requestAndKey, expected: 'permitted' },
    {
      what: 'a request and a CA at once',
      call: put(table, `uid#${name}-3`, 'ca#another'),
      expected: 'refused',
      limit: 'leading-keys',
    },
  ];
}

/** `ledger`: of the other cluster, as is `key`. */
function triesOfAttest({ name }: Site, key: string, table: string, ledger: string): readonly Try[] {
  const claim: ProbeCall = {
    call: 'TransactWriteItems',
    input: {
      TransactItems: [
        ...['id', 'once', 'verdict'].map((kind) => ({
          Put: { TableName: table, Item: { pk: { S: `${kind}#${name}` } } },
        })),
        {
          ConditionCheck: {
            TableName: table,
            Key: { pk: { S: `node#${name}` } },
            ConditionExpression: 'attribute_not_exists(pk)',
          },
        },
      ],
    },
  };
  return [
    // As attest claims a machine: three prefixes, of which each action has its own list.
    { what: 'a machine, its evidence and a verdict at once', call: claim, expected: 'permitted' },
    { what: 'a lock', call: put(table, `lock#${name}`), expected: 'refused', limit: 'leading-keys' },
    {
      what: 'a verdict and an entry of the list of machines at once',
      call: put(table, `verdict#${name}-1`, `machine#${name}`),
      expected: 'refused',
      limit: 'leading-keys',
    },
    { what: 'a record of the ledger', call: put(ledger, `uid#${name}-a`), expected: 'refused', limit: 'permissions' },
    { what: 'a digest', call: signWith(key), expected: 'refused', limit: 'permissions' },
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
