/** Every permission that the stacks give is one that something here fails without, or stands in a table with its reason. */
import { describe, expect, test } from 'vitest';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { requireTools } from '../../../tools/tools.ts';
import { askBehind, doors, type Door } from './doors.ts';
import { logOf } from './function-logs.ts';
import { administration } from './key-administration.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

/** By permission, what is refused without it. */
type Exercised = Readonly<Record<string, string>>;
type Reviewed = Readonly<Record<string, string>>;

const log = 'MiniStack writes the logs of functions without asking their role; without it Lambda writes none';
const service = 'MiniStack gives functions sessions of their roles without asking; Lambda could not run them';
const invoker = 'MiniStack does not ask a function whether a service may call it; API Gateway could not';
const schedule = 'MiniStack does not ask a function whether a service may call it; its status would never be measured';
const byUrl = 'MiniStack asks for lambda:InvokeFunctionUrl only; AWS for both since October 2025';
const people = 'for operators, who are none of the functions; the stack attaches it to no one';
const passed =
  'MiniStack does not tell which function calls; tried in state-stack.test.ts, where no function of ours does';
const elsewhere = 'left out in key-policy.test.ts, where somebody does what it is about';

/** The permissions that each cluster has, whatever its door. */
const exercised: Exercised = {
  'SignPolicy ReadRequestsAndCas dynamodb:GetItem': 'dynamodb:GetItem',
  'SignPolicy ReadLocks dynamodb:GetItem': 'dynamodb:GetItem',
  'SignPolicy WriteRequests dynamodb:PutItem': 'dynamodb:PutItem',
  'SignPolicy WriteRequests dynamodb:UpdateItem': 'dynamodb:UpdateItem',
  'CaKeyca SignCertificates kms:Sign SignRole': 'kms:Sign',
  'CaKeyca PublicKey kms:GetPublicKey SignRole': 'kms:GetPublicKey',
  'CaPolicy KeepCas dynamodb:GetItem': 'dynamodb:GetItem',
  'CaPolicy KeepCas dynamodb:PutItem': 'dynamodb:PutItem',
  'CaKeyca SignCaCertificate kms:Sign CaRole': 'kms:Sign',
  'CaKeyca PublicKey kms:GetPublicKey CaRole': 'kms:GetPublicKey',
};
const reviewed: Reviewed = {
  'SignPolicy WriteOwnLog logs:CreateLogStream': log,
  'SignPolicy WriteOwnLog logs:PutLogEvents': log,
  'CaPolicy WriteOwnLog logs:CreateLogStream': log,
  'CaPolicy WriteOwnLog logs:PutLogEvents': log,
  'SignRole - sts:AssumeRole lambda.amazonaws.com': service,
  'CaRole - sts:AssumeRole lambda.amazonaws.com': service,
  'CaStatusAllowEventRulecountersigndemoCa lambda:InvokeFunction events.amazonaws.com': schedule,
  'OperatorPolicy FindRegister cloudformation:DescribeStacks': people,
  'OperatorPolicy ReadRegister dynamodb:GetItem': people,
  'OperatorPolicy ListRegister dynamodb:Scan': people,
  'OperatorPolicy WriteRegister dynamodb:PutItem': people,
  'OperatorPolicy ChangeRegister dynamodb:UpdateItem': people,
  'OperatorPolicy ClearRegister dynamodb:DeleteItem': people,
  'OperatorPolicy ReadLedger dynamodb:GetItem': people,
  'OperatorPolicy FindSerial dynamodb:Query': people,
  'OperatorPolicy ReadLogs logs:FilterLogEvents': people,
  ...Object.fromEntries(
    ['Sign', 'Ca'].flatMap((role) =>
      ['kms:Sign', 'dynamodb:*', 'lambda:InvokeFunction', 'ec2:DescribeInstances', 'sts:AssumeRole'].map((action) => [
        `${role}OnlyInItsFunction OnlyInItsFunction Deny ${action}`,
        passed,
      ]),
    ),
  ),
  'CaKeyca NoOtherDeletion Deny kms:ScheduleKeyDeletion *': elsewhere,
  ...Object.fromEntries(
    Object.keys(administration).map((action) => [`CaKeyca Administration ${action} :root`, elsewhere]),
  ),
};

/** Those of the caller role, whatever it calls. */
const relayed: Exercised = {
  'CallerRole - sts:AssumeRole role/relay-demo': 'sts:AssumeRole',
  'CallerRole - sts:TagSession role/relay-demo': 'sts:TagSession',
};

/** Beside those above. */
const ofDoors: readonly { readonly door: Door; readonly exercised: Exercised; readonly reviewed: Reviewed }[] = [
  {
    door: doors.httpApi,
    exercised: { ...relayed, 'CallerPolicy CallOwnEndpoint execute-api:Invoke': 'execute-api:Invoke' },
    reviewed: routesOf('IamApi'),
  },
  {
    door: doors.functionUrl,
    exercised: { ...relayed, 'CallerPolicy CallOwnUrl lambda:InvokeFunctionUrl': 'lambda:InvokeFunctionUrl' },
    reviewed: { 'CallerPolicy OnlyByUrl lambda:InvokeFunction': byUrl },
  },
  {
    door: doors.tokens,
    exercised: {},
    reviewed: {
      ...routesOf('JwtApi'),
      'AuthorizerPolicy WriteOwnLog logs:CreateLogStream': log,
      'AuthorizerPolicy WriteOwnLog logs:PutLogEvents': log,
      'AuthorizerRole - sts:AssumeRole lambda.amazonaws.com': service,
    },
  },
];

describe.skipIf(skip).each(ofDoors)('permissions of the stacks, behind $door.name', (own) => {
  const { door } = own;
  const assembly = skip ? undefined : synthesiseClusters({ demo: door.settings });
  const all = { exercised: { ...exercised, ...own.exercised }, reviewed: { ...reviewed, ...own.reviewed } };

  /** Deploys without these and has one certificate issued; gives the actions that were refused on the way. */
  async function refusals(left: readonly string[]): Promise<readonly string[]> {
    let deployment: MiniStackDeployment | undefined;
    const said: string[] = [];
    try {
      deployment = await deployOnMiniStack(assembly!, { change: (template) => withoutPermissions(template, left) });
      const answer = await askBehind(deployment, door, await door.authorize(deployment));
      said.push(answer.text, await logOf(deployment));
      if (left.some((permission) => permission in all.exercised)) expect(answer.outcome).not.toBe('issued');
      else expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('not authorized to perform')) throw error;
      said.push(error.message);
    } finally {
      await deployment?.stop();
    }
    const actions = said.join('\n').matchAll(/is not authorized to perform: ([a-z0-9-]+:\w+)/g);
    return [...new Set([...actions].map(([, action = '']) => action))];
  }

  test('are all exercised here, or reviewed', () => {
    const given = [...assembly!.templates.values()].flatMap(permissionsOf);
    expect(given.toSorted()).toEqual([...Object.keys(all.exercised), ...Object.keys(all.reviewed)].toSorted());
  });

  test('are enough, all together', async () => {
    expect(await refusals([])).toEqual([]);
  });

  test('are as little exercised as the review says: without all of those, the same is issued', async () => {
    expect(await refusals(Object.keys(all.reviewed))).toEqual([]);
  });

  // What is the same behind each door is left out behind the first.
  const tried = own === ofDoors[0] ? all.exercised : own.exercised;
  test.each(Object.entries(tried))('without %s, %s is refused', async (permission, action) => {
    expect(await refusals([permission])).toContain(action);
  });
});

/** A function says of each route by itself who may call it. */
function routesOf(api: string): Reviewed {
  const paths = ['POSTv1clustersdemosign', 'GETv1clustersdemohealthz'];
  for (const bundle of ['', 'ca']) paths.push(`GETv1clustersdemotrustbundle${bundle}`);
  const names = paths.map((path) => `${api}${path}${api}SignPermission`);
  if (api === 'JwtApi') names.push('JwtApicountersigndemoJwtApiJwtAuthorizerPermission');
  return Object.fromEntries(names.map((name) => [`${name} lambda:InvokeFunction apigateway.amazonaws.com`, invoker]));
}
