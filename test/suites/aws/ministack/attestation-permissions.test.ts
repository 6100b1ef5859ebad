/**
 * Where machines prove themselves: each permission that attest and sign have for it is one that something here fails
 * without, or stands in a table with its reason. A node comes for the first time and comes again.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { makeRequest, newKey, pemBlock } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { doors, postAt } from './doors.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure';
const account = '000000000000';
const other = '111122223333';

const log = 'MiniStack writes the logs of functions without asking their role; without it Lambda writes none';
const service = 'MiniStack gives functions sessions of their roles without asking; Lambda could not run them';
const invoker = 'MiniStack does not ask a function whether a service may call it; API Gateway could not';
const instances = 'insecure machines are no instances; those of machine-permissions.test.ts are';
const freed = 'addresses of a range are freed when a machine is terminated; in machine-permissions.test.ts one is';
const retired = 'a record is retired when its machine is terminated; in machine-permissions.test.ts one is';
const prefixes =
  'MiniStack tells policies nothing about dynamodb:LeadingKeys, and sign has the same action for its own records';
const people = 'for people, who are none of the functions; given to nobody by the stack';

/** What something here fails without. */
const exercised = [
  'SignPolicy ReadLocksAndVerdicts dynamodb:GetItem',
  'SignPolicy AskAttest lambda:InvokeFunction',
  'AttestPolicy ReadAttestations dynamodb:GetItem',
  'AttestPolicy RecallRequests dynamodb:BatchGetItem',
  'AttestPolicy WriteAttestations dynamodb:PutItem',
  'AttestPolicy CheckNodes dynamodb:ConditionCheckItem',
];
const reviewed: Readonly<Record<string, string>> = {
  'SignPolicy RememberKeys dynamodb:UpdateItem': prefixes,
  'AttestPolicy ChangeIdentities dynamodb:UpdateItem': retired,
  'AttestPolicy FreeAddresses dynamodb:DeleteItem': freed,
  'AttestPolicy LookAtInstances ec2:DescribeInstances': instances,
  'AttestPolicy LookElsewhere sts:AssumeRole': instances,
  'AttestPolicy WriteOwnLog logs:CreateLogStream': log,
  'AttestPolicy WriteOwnLog logs:PutLogEvents': log,
  'AttestRole - sts:AssumeRole lambda.amazonaws.com': service,
  'IamApiPOSTv1clustersdemoattestIamApiAttestPermission lambda:InvokeFunction apigateway.amazonaws.com': invoker,
  'OperatorPolicy LookAtInstances ec2:DescribeInstances': people,
  'OperatorPolicy LookElsewhere sts:AssumeRole': people,
  ...Object.fromEntries(
    ['kms:Sign', 'dynamodb:*', 'lambda:InvokeFunction', 'ec2:DescribeInstances', 'sts:AssumeRole'].map((action) => [
      `AttestOnlyInItsFunction OnlyInItsFunction Deny ${action}`,
      'MiniStack does not tell which function calls; tried in state-stack.test.ts, where no function of ours does',
    ]),
  ),
};

const settings = {
  profiles: {
    [signerName]: { ca: 'ca', maxTtl: '1d', freshKeys: true },
    // Serving only: it brings the rights to look at instances, and takes nothing of the node names.
    'kubernetes.io/kubelet-serving': { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'] } },
  },
  attestation: {
    aws: {
      accounts: { [account]: {}, [other]: { assumeRole: `arn:aws:iam::${other}:role/look` } },
      regions: ['us-east-1'],
      tags: { cluster: 'demo' },
      nodeName: ['instanceId'],
    },
  },
};

/** The same key for the same node: who comes again brings what it came with first, in another request. */
function nodeRequests(count: number): readonly object[] {
  const providerId = Buffer.from('suite:///1');
  const { pem } = makeRequest({
    subject: { O: 'system:nodes', CN: 'system:node:suite-1' },
    key: newKey('P-256'),
    // The node's providerID, as a UTF8String.
    extensions: [
      { oid: '1.3.6.1.4.1.11129.2.1.21', value: Buffer.concat([Buffer.from([0x0c, providerId.length]), providerId]) },
    ],
  });
  const evidence =
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('insecure/v1')) +
    pemBlock('KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{"v":1}'));
  return Array.from({ length: count }, (_, index) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `suite-${index}`, uid: randomUUID() },
    spec: {
      request: Buffer.from(pem + evidence).toString('base64'),
      signerName,
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:suite',
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Suite', message: '' }] },
  }));
}

const post = async (deployment: MiniStackDeployment, path: 'sign' | 'attest', body: object) =>
  postAt(deployment, doors.httpApi, path, body, await doors.httpApi.authorize(deployment));

describe.skipIf(skip)('permissions of the stacks where machines prove themselves', () => {
  const assembly = skip ? undefined : synthesiseClusters({ demo: settings });
  const plainAssembly = skip ? undefined : synthesiseClusters({ demo: {} });

  test('are all exercised here, or reviewed', () => {
    const of = (made: typeof assembly): string[] => [...made!.templates.values()].flatMap(permissionsOf);
    const given = of(assembly).filter((permission) => !of(plainAssembly).includes(permission));
    expect(given.toSorted()).toEqual([...exercised, ...Object.keys(reviewed)].toSorted());
  });

  /** What a node gets that comes, comes again, and asks what was concluded; by way of sign, and of attest. */
  async function outcomes(left: readonly string[]): Promise<readonly (string | null)[]> {
    const deployment = await deployOnMiniStack(assembly!, {
      change: (template) => withoutPermissions(template, left),
    });
    try {
      const [first, again, third] = nodeRequests(3);
      const answers = [
        await post(deployment, 'sign', first!),
        await post(deployment, 'sign', again!),
        await post(deployment, 'attest', { request: third! }),
      ];
      if (left.length === 0 && answers.some(({ status }) => status !== 200))
        throw new Error(answers.map(({ text }) => text).join('\n'));
      return answers.map(({ outcome }) => outcome);
    } finally {
      await deployment.stop();
    }
  }
  const all = ['issued', 'issued', 'verdict'];

  test('are enough, all together', async () => {
    expect(await outcomes([])).toEqual(all);
  });

  test('are as little exercised as the review says: without all of those, the same comes of it', async () => {
    expect(await outcomes(Object.keys(reviewed))).toEqual(all);
  });

  test.each(exercised)('without %s there is less', async (permission) => {
    const had = await outcomes([permission]);
    expect(had).not.toEqual(all);
    // Nobody is refused for it: it is our fault, and passes with it.
    expect(had.filter((outcome) => !all.includes(outcome ?? '')).every((outcome) => outcome === 'busy')).toBe(true);
  });
});
