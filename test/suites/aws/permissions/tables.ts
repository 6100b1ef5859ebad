/**
 * Each permission of the synthesised stacks, with the suite of this folder that leaves it out, or the reason why none does. The names are
 * those of statements.ts. test/unit/lib/permissions.test.ts compares these tables with every template, so that no statement is added
 * without a line here.
 */
import { administration, challengeAdministration, deletion } from './key-administration.ts';

/** By permission, what is said or done without it. */
export type Exercised = Readonly<Record<string, string>>;
/** By permission, why the suite does not leave it out. */
export type Reviewed = Readonly<Record<string, string>>;

export interface PermissionTable {
  /** The suite, which reads this table. */
  readonly suite: string;
  readonly exercised: Exercised;
  readonly reviewed: Reviewed;
}

const log = 'MiniStack writes the logs of functions without asking their role; without it Lambda writes none';
const service = 'MiniStack gives functions sessions of their roles without asking; Lambda could not run them';
const invoker = 'MiniStack does not ask a function whether a service may call it; API Gateway could not';
const schedule = 'MiniStack does not ask a function whether a service may call it; its status would never be measured';
const lookSchedule =
  'MiniStack does not ask a function whether a service may call it; terminated machines would keep their names until an operator acts';
const byUrl = 'MiniStack asks for lambda:InvokeFunctionUrl only; AWS for both since October 2025';
const people = 'for operators, not for a function; left out in operator.test.ts';
const passed =
  'MiniStack does not tell which function calls; tried in state-stack.test.ts, where no function of ours does';
const elsewhere = 'left out in key-policy.test.ts, where a principal does what it is about';
const contract =
  'for the kubeadm function, which no relay reaches; the suite of the command line on MiniStack leaves out each of its actions';
const prefixes =
  'MiniStack tells policies nothing about dynamodb:LeadingKeys, and sign has the same action for its own records';

const each = (names: readonly string[], value: string): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, value]));

/** `OnlyInItsFunction` denies these to sessions of the role outside its function. */
const confined = [
  'kms:Sign',
  'kms:GenerateMac',
  'dynamodb:*',
  'lambda:InvokeFunction',
  'ec2:DescribeInstances',
  'sts:AssumeRole',
];
const denialsOf = (role: string): string[] =>
  confined.map((action) => `${role}OnlyInItsFunction OnlyInItsFunction Deny ${action}`);

/** `OnlyInItsFunction` denies this too. */
const endorsementKeyDenialOf = (role: string): string =>
  `${role}OnlyInItsFunction OnlyInItsFunction Deny ec2:GetInstanceTpmEkPub`;
const noNitroTpm =
  'MiniStack does not know this call and has no instances with a NitroTPM; the unit tests of the adapter have a fake EC2 that asks for the right';

/** What administrators and deleters may do with a CA key. */
export const keyDenial = 'CaKeyca NoOtherDeletion Deny kms:ScheduleKeyDeletion *';
export const administrationOf = (who: string): string[] =>
  Object.keys(administration).map((action) => `CaKeyca Administration ${action} ${who}`);
export const deletionOf = (who: string): string[] =>
  Object.keys(deletion).map((action) => `CaKeyca Deletion ${action} ${who}`);

export const keyTable: PermissionTable = {
  suite: 'key-policy.test.ts',
  exercised: each(
    [
      ...administrationOf(':root'),
      ...administrationOf('role/administrator'),
      ...deletionOf('user/custodian'),
      keyDenial,
    ],
    'is refused to who had it, or permitted to all',
  ),
  reviewed: {},
};

/** What the importer of a CA key may do with it. */
const importing = {
  describe: 'CaKeyca LookBeforeImport kms:DescribeKey role/mover',
  publicKey: 'CaKeyca LookBeforeImport kms:GetPublicKey role/mover',
  parameters: 'CaKeyca PrepareImport kms:GetParametersForImport role/mover',
  material: 'CaKeyca ImportKey kms:ImportKeyMaterial role/mover',
} as const;
export const importPermission = (step: keyof typeof importing): string => importing[step];
export const materialDenial = 'CaKeyca NoDeletionOfMaterial Deny kms:DeleteImportedKeyMaterial *';

export const importTable: PermissionTable = {
  suite: 'import-permissions.test.ts',
  exercised: each([...Object.values(importing), materialDenial], 'is refused to who had it, or permitted to all'),
  reviewed: {},
};

/** What administrators may do with the challenge key. */
export const challengeAdministrationOf = (who: string): string[] =>
  Object.keys(challengeAdministration).map((action) => `ChallengeKey Administration ${action} ${who}`);
export const macPermission = 'ChallengeKey MakeChallenges kms:GenerateMac AttestRole';

export const challengeKeyTable: PermissionTable = {
  suite: 'challenge-key.test.ts',
  exercised: each(
    [...challengeAdministrationOf(':root'), ...challengeAdministrationOf('role/administrator'), macPermission],
    'is refused to who had it',
  ),
  reviewed: {},
};

export const stateTable: PermissionTable = {
  suite: 'state-stack.test.ts',
  exercised: {
    ...each(['Sign', 'Ca', 'Attest'].flatMap(denialsOf), 'another function could do it with the role'),
    'CaKeyca Administration kms:ReplicateKey :root': 'kms:ReplicateKey',
  },
  reviewed: {
    'CaKeyca Administration kms:ReplicateKey role/administrator':
      'tried for the account in state-stack.test.ts; key-policy.test.ts shows that named administrators have what their statement has',
  },
};

export const operatorTable = {
  suite: 'operator.test.ts',
  exercised: {
    'OperatorPolicy FindRegister cloudformation:DescribeStacks': 'cloudformation:DescribeStacks',
    'OperatorPolicy ListRegister dynamodb:Scan': 'dynamodb:Scan',
    'OperatorPolicy ReadRegister dynamodb:GetItem': 'dynamodb:GetItem',
    'OperatorPolicy WriteRegister dynamodb:PutItem': 'dynamodb:PutItem',
    'OperatorPolicy ClearRegister dynamodb:DeleteItem': 'dynamodb:DeleteItem',
    'OperatorPolicy ChangeRegister dynamodb:UpdateItem': 'dynamodb:UpdateItem',
    // EC2's own message may quote policies, so that the command names the error alone.
    'OperatorPolicy LookAtInstances ec2:DescribeInstances': 'UnauthorizedOperation',
    'OperatorPolicy LookElsewhere sts:AssumeRole': 'AccessDenied',
    'OperatorPolicy ReadLedger dynamodb:GetItem': 'dynamodb:GetItem',
    'OperatorPolicy ReadLogs logs:FilterLogEvents': 'logs:FilterLogEvents',
    'OperatorPolicy FindSerial dynamodb:Query': 'dynamodb:Query',
    'OperatorPolicy ListCertificates dynamodb:Query': 'dynamodb:Query',
    'OperatorPolicy Revoke dynamodb:PutItem': 'dynamodb:PutItem',
    'OperatorPolicy LookAtTables dynamodb:DescribeTable': 'dynamodb:DescribeTable',
    'OperatorPolicy LookAtBackups dynamodb:DescribeContinuousBackups': 'dynamodb:DescribeContinuousBackups',
    'AttestPolicy LookElsewhere sts:AssumeRole': 'AccessDenied',
  },
  reviewed: {},
} as const satisfies PermissionTable;

/** The permissions that each cluster has, whatever its door. */
export const clusterTable: PermissionTable = {
  suite: 'permissions.test.ts',
  exercised: {
    'SignPolicy ReadRequestsCasAndCrls dynamodb:GetItem': 'dynamodb:GetItem',
    'SignPolicy ReadLocks dynamodb:GetItem': 'dynamodb:GetItem',
    'SignPolicy WriteRequests dynamodb:PutItem': 'dynamodb:PutItem',
    'SignPolicy WriteRequests dynamodb:UpdateItem': 'dynamodb:UpdateItem',
    'CaKeyca SignCertificates kms:Sign SignRole': 'kms:Sign',
    'CaKeyca PublicKey kms:GetPublicKey SignRole': 'kms:GetPublicKey',
    'CaPolicy KeepCas dynamodb:GetItem': 'dynamodb:GetItem',
    'CaPolicy KeepCas dynamodb:PutItem': 'dynamodb:PutItem',
    'CaKeyca SignCaCertificate kms:Sign CaRole': 'kms:Sign',
    'CaKeyca PublicKey kms:GetPublicKey CaRole': 'kms:GetPublicKey',
  },
  reviewed: {
    ...each(
      [
        'CaPolicy KeepCrls dynamodb:GetItem',
        'CaPolicy KeepCrls dynamodb:PutItem',
        'CaPolicy KeepCrls dynamodb:DeleteItem',
        'CaPolicy ReadRevocations dynamodb:GetItem',
        'CaPolicy ListRevocations dynamodb:Query',
      ],
      'for the action crl of the ca function, which issues no certificate; the templates are asserted statement by statement',
    ),
    'CaPolicy RecordSignatures dynamodb:PutItem':
      'MiniStack tells policies nothing about dynamodb:LeadingKeys, and the ca function has the same action for its CAs',
    'SignPolicy WriteOwnLog logs:CreateLogStream': log,
    'SignPolicy WriteOwnLog logs:PutLogEvents': log,
    'CaPolicy WriteOwnLog logs:CreateLogStream': log,
    'CaPolicy WriteOwnLog logs:PutLogEvents': log,
    'SignRole - sts:AssumeRole lambda.amazonaws.com': service,
    'CaRole - sts:AssumeRole lambda.amazonaws.com': service,
    'CaStatusAllowEventRulecountersigndemoCa lambda:InvokeFunction events.amazonaws.com': schedule,
    ...each(
      Object.keys(operatorTable.exercised).filter((name) =>
        /^OperatorPolicy (?!LookAtInstances|LookElsewhere)/.test(name),
      ),
      people,
    ),
    ...each(['Sign', 'Ca'].flatMap(denialsOf), passed),
    ...each(['Sign', 'Ca'].map(endorsementKeyDenialOf), noNitroTpm),
    ...each([keyDenial, ...administrationOf(':root')], elsewhere),
  },
};

/** Of clusters whose operators have certificates of kubeadm's control plane signed, beside those of each cluster. */
const kubeadmTable: PermissionTable = {
  suite: 'permissions.test.ts',
  exercised: {},
  reviewed: {
    ...each(
      [
        'KubeadmPolicy ReadCas dynamodb:GetItem',
        'KubeadmPolicy KeepOperatorsCertificates dynamodb:GetItem',
        'KubeadmPolicy KeepOperatorsCertificates dynamodb:PutItem',
        'KubeadmPolicy KeepOperatorsCertificates dynamodb:UpdateItem',
        'KubeadmPolicy ReadLocks dynamodb:GetItem',
      ],
      contract,
    ),
    'CaKeyca SignControlPlane kms:Sign KubeadmRole': contract,
    'CaKeyca PublicKey kms:GetPublicKey KubeadmRole': contract,
    'KubeadmPolicy WriteOwnLog logs:CreateLogStream': log,
    'KubeadmPolicy WriteOwnLog logs:PutLogEvents': log,
    'KubeadmRole - sts:AssumeRole lambda.amazonaws.com': service,
    ...each(denialsOf('Kubeadm'), passed),
    [endorsementKeyDenialOf('Kubeadm')]: noNitroTpm,
  },
};

/** Those of the caller role, whatever it calls. */
const relayed: Exercised = {
  'CallerRole - sts:AssumeRole role/relay-demo': 'sts:AssumeRole',
  'CallerRole - sts:TagSession role/relay-demo': 'sts:TagSession',
};

/** Beside those of each cluster, by door of doors.ts. */
export const doorTables = {
  httpApi: {
    suite: 'permissions.test.ts',
    exercised: { ...relayed, 'CallerPolicy CallOwnEndpoint execute-api:Invoke': 'execute-api:Invoke' },
    reviewed: routesOf('IamApi'),
  },
  functionUrl: {
    suite: 'permissions.test.ts',
    exercised: { ...relayed, 'CallerPolicy CallOwnUrl lambda:InvokeFunctionUrl': 'lambda:InvokeFunctionUrl' },
    reviewed: { 'CallerPolicy OnlyByUrl lambda:InvokeFunction': byUrl },
  },
  tokens: {
    suite: 'permissions.test.ts',
    exercised: {},
    reviewed: {
      ...routesOf('JwtApi'),
      'AuthorizerPolicy WriteOwnLog logs:CreateLogStream': log,
      'AuthorizerPolicy WriteOwnLog logs:PutLogEvents': log,
      'AuthorizerRole - sts:AssumeRole lambda.amazonaws.com': service,
    },
  },
} as const satisfies Readonly<Record<string, PermissionTable>>;

/** A function says of each route by itself who may call it. */
function routesOf(api: string): Reviewed {
  const paths = ['POSTv1clustersdemosign', 'GETv1clustersdemohealthz'];
  for (const read of ['trustbundle', 'trustbundleca', 'trustbundles', 'crlca', 'revoked'])
    paths.push(`GETv1clustersdemo${read}`);
  const names = paths.map((path) => `${api}${path}${api}SignPermission`);
  if (api === 'JwtApi') names.push('JwtApicountersigndemoJwtApiJwtAuthorizerPermission');
  return each(
    names.map((name) => `${name} lambda:InvokeFunction apigateway.amazonaws.com`),
    invoker,
  );
}

const attestRoutes = (api: string): Reviewed =>
  each(
    ['attest', 'attestlook'].map(
      (path) => `${api}POSTv1clustersdemo${path}${api}AttestPermission lambda:InvokeFunction apigateway.amazonaws.com`,
    ),
    invoker,
  );

/** Of clusters whose machines prove themselves without EC2, beside those above. */
export const attestationTable: PermissionTable = {
  suite: 'attestation-permissions.test.ts',
  exercised: each(
    [
      'SignPolicy ReadLocksAndVerdicts dynamodb:GetItem',
      'SignPolicy AskAttest lambda:InvokeFunction',
      'AttestPolicy ReadAttestations dynamodb:GetItem',
      'AttestPolicy RecallRequests dynamodb:BatchGetItem',
      'AttestPolicy WriteAttestations dynamodb:PutItem',
      'AttestPolicy CheckNodes dynamodb:ConditionCheckItem',
    ],
    'busy',
  ),
  reviewed: {
    'SignPolicy RememberKeys dynamodb:UpdateItem': prefixes,
    'AttestPolicy ChangeIdentities dynamodb:UpdateItem':
      'a record is retired when its machine is terminated; in machine-permissions.test.ts one is',
    'AttestPolicy FreeAddresses dynamodb:DeleteItem':
      'addresses of a range are freed when a machine is terminated; in machine-permissions.test.ts one is',
    'AttestPolicy LookAtInstances ec2:DescribeInstances':
      'insecure machines are no instances; those of machine-permissions.test.ts are',
    'AttestPolicy LookElsewhere sts:AssumeRole':
      'insecure machines are no instances; operator.test.ts assumes a role as attest does',
    'AttestPolicy WriteOwnLog logs:CreateLogStream': log,
    'AttestPolicy WriteOwnLog logs:PutLogEvents': log,
    'AttestRole - sts:AssumeRole lambda.amazonaws.com': service,
    ...attestRoutes('IamApi'),
    'RetireTerminatedAllowEventRulecountersigndemoAttest lambda:InvokeFunction events.amazonaws.com': lookSchedule,
    'OperatorPolicy LookAtInstances ec2:DescribeInstances': people,
    'OperatorPolicy LookElsewhere sts:AssumeRole': people,
    ...each(denialsOf('Attest'), passed),
    [endorsementKeyDenialOf('Attest')]: noNitroTpm,
  },
};

const denied = (action: string): string => `is not authorized to perform: ${action}`;

/** Of clusters whose machines are EC2 instances: what AWS says without each. */
export const machineTable: PermissionTable = {
  suite: 'machine-permissions.test.ts',
  exercised: {
    'SignPolicy ReadLocksAndVerdicts dynamodb:GetItem': denied('dynamodb:GetItem'),
    'SignPolicy AskAttest lambda:InvokeFunction': denied('lambda:InvokeFunction'),
    'AttestPolicy ReadAttestations dynamodb:GetItem': denied('dynamodb:GetItem'),
    'AttestPolicy RecallRequests dynamodb:BatchGetItem': denied('dynamodb:BatchGetItem'),
    'AttestPolicy WriteAttestations dynamodb:PutItem': denied('dynamodb:PutItem'),
    'AttestPolicy ChangeIdentities dynamodb:UpdateItem': denied('dynamodb:UpdateItem'),
    'AttestPolicy CheckNodes dynamodb:ConditionCheckItem': denied('dynamodb:ConditionCheckItem'),
    'AttestPolicy FreeAddresses dynamodb:DeleteItem': denied('dynamodb:DeleteItem'),
    // Its own message may quote policies, so that the log names the error alone.
    'AttestPolicy LookAtInstances ec2:DescribeInstances': 'EC2 cannot be asked (UnauthorizedOperation)',
  },
  reviewed: {
    'AttestPolicy WriteOwnLog logs:CreateLogStream': log,
    'AttestPolicy WriteOwnLog logs:PutLogEvents': log,
  },
};

export const permissionTables: readonly PermissionTable[] = [
  keyTable,
  importTable,
  challengeKeyTable,
  stateTable,
  operatorTable,
  clusterTable,
  ...Object.values(doorTables),
  kubeadmTable,
  attestationTable,
  machineTable,
  // Of clusters with the provider aws-nitrotpm alone.
  {
    suite: 'machine-permissions.test.ts',
    exercised: {},
    reviewed: { 'AttestPolicy ReadEndorsementKeys ec2:GetInstanceTpmEkPub': noNitroTpm },
  },
  // The API for tokens has the route of the other one.
  { suite: 'attestation-permissions.test.ts', exercised: {}, reviewed: attestRoutes('JwtApi') },
];
