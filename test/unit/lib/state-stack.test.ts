/** What must not be lost, and who may use the keys: each resource, each statement. */
import { describe, expect, test } from 'vitest';
import { clusters, clustersNamed } from './clusters.ts';
import { ofType, plain, resource, statementsOf, synthesise, template } from './synthesis.ts';
import type { Resource, Statement } from './synthesis.ts';

const synthesis = synthesise(clusters);
const api = template(synthesis, 'countersign-api-state');

test('each cluster has keys, two tables and the two roles that the keys trust, and nothing else', () => {
  const types = (stack: string): string[] =>
    Object.values(template(synthesis, stack).Resources).map(({ Type }) => Type);
  const [key, role, table] = ['AWS::KMS::Key', 'AWS::IAM::Role', 'AWS::DynamoDB::Table'];
  const roles = ['AWS::IAM::Policy', 'AWS::IAM::Policy', role, role];
  expect(types('countersign-api-state').sort()).toEqual([table, table, ...roles, key, key]);
  expect(types('countersign-url-state').sort()).toEqual([table, table, ...roles, key]);
  expect(types('countersign-tokens-state').sort()).toEqual([table, table, ...roles, key]);
});

test('where machines prove themselves it remembers them, by a role that no key trusts', () => {
  for (const stack of ['countersign-proof-state', 'countersign-first-state']) {
    const of = template(synthesis, stack);
    const types = Object.values(of.Resources).map(({ Type }): string => Type.split('::').at(-1) ?? '');
    expect(types.sort()).toEqual(['Key', 'Policy', 'Policy', 'Policy', 'Role', 'Role', 'Role', 'Table', 'Table']);
    expect(JSON.stringify(ofType(of, 'AWS::KMS::Key'))).not.toContain('AttestRole');
    expect(plain(of.Outputs?.['AttestRoleArn'], synthesis)).toMatchObject({ Value: '<AttestRole.Arn>' });
  }
});

test('state cannot be deleted by accident, services can', () => {
  const stacks = Object.entries(synthesis.manifest.artifacts).filter(
    ([, { type }]) => type === 'aws:cloudformation:stack',
  );
  expect(stacks.map(([name, { properties }]) => [name, properties?.['terminationProtection'] ?? false])).toEqual(
    ['api', 'url', 'tokens', 'proof', 'first', 'metal'].flatMap((name) => [
      [`countersign-${name}-state`, true],
      [`countersign-${name}`, false],
    ]),
  );
});

test('the stacks are where the file says, or where the credentials are', () => {
  const { artifacts } = synthesis.manifest;
  expect(artifacts['countersign-api']?.environment).toBe('aws://111122223333/eu-central-1');
  expect(artifacts['countersign-api-state']?.environment).toBe('aws://111122223333/eu-central-1');
  expect(artifacts['countersign-url']?.environment).toBe('aws://unknown-account/unknown-region');
});

describe('the certificates table', () => {
  test('is as the adapter wants it, can be restored to any second, and stays', () => {
    const [, table] = resource(api, 'AWS::DynamoDB::Table', 'Certificates');
    expect(table).toEqual({
      Type: 'AWS::DynamoDB::Table',
      Properties: {
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
        AttributeDefinitions: [
          { AttributeName: 'pk', AttributeType: 'S' },
          { AttributeName: 'serial', AttributeType: 'S' },
          { AttributeName: 'expiry', AttributeType: 'S' },
          { AttributeName: 'notAfter', AttributeType: 'N' },
        ],
        GlobalSecondaryIndexes: [
          {
            IndexName: 'serial',
            KeySchema: [{ AttributeName: 'serial', KeyType: 'HASH' }],
            Projection: { ProjectionType: 'ALL' },
          },
          {
            IndexName: 'expiry',
            KeySchema: [
              { AttributeName: 'expiry', KeyType: 'HASH' },
              { AttributeName: 'notAfter', KeyType: 'RANGE' },
            ],
            Projection: { ProjectionType: 'ALL' },
          },
        ],
        BillingMode: 'PAY_PER_REQUEST',
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        DeletionProtectionEnabled: true,
      },
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
    });
  });
});

test('the attestations table likewise, and forgets what has expired', () => {
  const [, table] = resource(template(synthesis, 'countersign-proof-state'), 'AWS::DynamoDB::Table', 'Attestations');
  expect(table).toEqual({
    Type: 'AWS::DynamoDB::Table',
    Properties: {
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      DeletionProtectionEnabled: true,
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
    },
    DeletionPolicy: 'Retain',
    UpdateReplacePolicy: 'Retain',
  });
});

describe('the roles', () => {
  test.each([
    ['countersign-api-state', 'SignRole', 'Signs certificates of cluster api'],
    ['countersign-api-state', 'CaRole', 'Makes the CA certificates of cluster api'],
    ['countersign-proof-state', 'AttestRole', 'Proves the machines of cluster proof'],
  ])(
    '%s %s is Lambda’s to take, has no name that could be taken over, and no permission yet',
    (stack, id, description) => {
      expect(resource(template(synthesis, stack), 'AWS::IAM::Role', id)[1].Properties).toEqual({
        AssumeRolePolicyDocument: {
          Version: '2012-10-17',
          Statement: [{ Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service: 'lambda.amazonaws.com' } }],
        },
        Description: description,
      });
    },
  );
});

/** A principal with iam:PassRole may give a role to a function of its own. */
test.each([
  ['api', 'Sign', 'sign', 'arn:aws:lambda:eu-central-1:111122223333:function:countersign-api-sign'],
  ['api', 'Ca', 'ca', 'arn:aws:lambda:eu-central-1:111122223333:function:countersign-api-ca'],
  ['proof', 'Attest', 'attest', 'arn:aws:lambda:eu-central-1:111122223333:function:countersign-proof-attest'],
  ['url', 'Sign', 'sign', 'arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:function:countersign-url-sign'],
])('%s: the %s role is of no use in another function than %s', (cluster, id, service, arn) => {
  const state = template(synthesis, `countersign-${cluster}-state`);
  const [, policy] = resource(state, 'AWS::IAM::Policy', `${id}OnlyInItsFunction`);
  expect(plain(statementsOf(policy), synthesis)).toEqual([
    {
      Sid: 'OnlyInItsFunction',
      Effect: 'Deny',
      Action: [
        'kms:Sign',
        'kms:GenerateMac',
        'dynamodb:*',
        'lambda:InvokeFunction',
        'ec2:DescribeInstances',
        'ec2:GetInstanceTpmEkPub',
        'sts:AssumeRole',
      ],
      Resource: '*',
      Condition: { ArnNotEquals: { 'lambda:SourceFunctionArn': arn } },
    },
  ]);
  expect(plain(policy.Properties['Roles'], synthesis)).toEqual([`<${id}Role>`]);
  // Every Allow of the role is of an action that this denies, or is about logs and public keys.
  const services = template(synthesis, `countersign-${cluster}`);
  const allowed = statementsOf(resource(services, 'AWS::IAM::Policy', `${id}Policy`)[1]).flatMap(
    ({ Action }) => Action,
  );
  expect(
    allowed.filter(
      (action) => !/^(dynamodb:|logs:|lambda:InvokeFunction$|ec2:DescribeInstances$|sts:AssumeRole$)/.test(action),
    ),
  ).toEqual([]);
  // The function has that name.
  expect(resource(services, 'AWS::Lambda::Function', id)[1].Properties['FunctionName']).toBe(
    `countersign-${cluster}-${service}`,
  );
});

test('in another partition every ARN is of that partition', () => {
  const sovereign = synthesise(`version: 1
clusters:
  eu:
    cas: {ca: {subject: {commonName: eu}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    access: {iam: {principals: ['arn:aws-eusc:iam::444455556666:role/relay']}}
    aws: {account: '111122223333', region: eusc-de-east-1}
`);
  for (const text of sovereign.texts.values()) expect(text).not.toMatch(/arn:aws:|amazonaws\.com"?[:/]/);
  expect(JSON.stringify(plain(template(sovereign, 'countersign-eu-state'), sovereign))).toContain(
    '"lambda:SourceFunctionArn":"arn:aws-eusc:lambda:eusc-de-east-1:111122223333:function:countersign-eu-sign"',
  );
});

test('where TPMs are challenged there is a key for it besides, which ends with its stack', () => {
  const of = template(synthesis, 'countersign-metal-state');
  const types = Object.values(of.Resources).map(({ Type }): string => Type.split('::').at(-1) ?? '');
  expect(types.sort()).toEqual(['Key', 'Key', 'Policy', 'Policy', 'Policy', 'Role', 'Role', 'Role', 'Table', 'Table']);
  const { Properties, ...rest } = resource(of, 'AWS::KMS::Key', 'ChallengeKey')[1];
  const { KeyPolicy: _, ...properties } = Properties;
  expect(properties).toEqual({
    Description: 'Attestation challenges of cluster metal',
    KeySpec: 'HMAC_256',
    KeyUsage: 'GENERATE_VERIFY_MAC',
    PendingWindowInDays: 7,
  });
  expect(rest).toEqual({ Type: 'AWS::KMS::Key', DeletionPolicy: 'Delete', UpdateReplacePolicy: 'Delete' });
});

const administration = [
  'kms:DescribeKey',
  'kms:GetKeyPolicy',
  'kms:ListKeyPolicies',
  'kms:GetKeyRotationStatus',
  'kms:ListResourceTags',
  'kms:GetPublicKey',
  'kms:PutKeyPolicy',
  'kms:UpdateKeyDescription',
  'kms:EnableKey',
  'kms:DisableKey',
  'kms:TagResource',
  'kms:UntagResource',
  'kms:ListGrants',
  'kms:RevokeGrant',
  'kms:CancelKeyDeletion',
];

function use(algorithm: string): object[] {
  const Condition = { StringEquals: { 'kms:SigningAlgorithm': algorithm, 'kms:MessageType': 'DIGEST' } };
  const statement = (Sid: string, Principal: object, Action: string) => ({
    Sid,
    Effect: 'Allow',
    Principal,
    Action,
    Resource: '*',
  });
  return [
    { ...statement('SignCertificates', { AWS: '<SignRole.Arn>' }, 'kms:Sign'), Condition },
    { ...statement('SignCaCertificate', { AWS: '<CaRole.Arn>' }, 'kms:Sign'), Condition },
    statement('PublicKey', { AWS: ['<SignRole.Arn>', '<CaRole.Arn>'] }, 'kms:GetPublicKey'),
  ];
}

describe('the CA keys', () => {
  const key = (stack: string, id: string): Resource => resource(template(synthesis, stack), 'AWS::KMS::Key', id)[1];

  test.each([
    ['countersign-api-state', 'CaKeynodes', 'CA nodes of cluster api', 'ECC_NIST_P256'],
    ['countersign-api-state', 'CaKeyweb', 'CA web of cluster api', 'RSA_3072'],
    ['countersign-url-state', 'CaKeyca', 'CA ca of cluster url', 'ECC_NIST_P256'],
  ])('%s %s can only sign, and outlives its stack', (stack, id, description, spec) => {
    const {
      Properties: { KeyPolicy: _, ...properties },
      ...rest
    } = key(stack, id);
    expect(properties).toEqual({ Description: description, KeySpec: spec, KeyUsage: 'SIGN_VERIFY' });
    expect(rest).toEqual({ Type: 'AWS::KMS::Key', DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
  });

  const primary = 'arn:aws:kms:eu-west-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef';
  const many = synthesise(
    clusters
      .replace('{subject: {commonName: nodes}}', '{subject: {commonName: nodes}, multiRegion: true}')
      .replace('{subject: {commonName: web},', `{subject: {commonName: web}, replicaOf: '${primary}',`),
  );

  test('a multi-Region key is made as one, and its administrators may replicate it', () => {
    const { Properties } = resource(template(many, 'countersign-api-state'), 'AWS::KMS::Key', 'CaKeynodes')[1];
    const { KeyPolicy: _, ...properties } = Properties;
    expect(properties).toEqual({
      Description: 'CA nodes of cluster api',
      KeySpec: 'ECC_NIST_P256',
      KeyUsage: 'SIGN_VERIFY',
      MultiRegion: true,
    });
    const [first, ...others] = statementsOf({ Properties } as Resource, 'KeyPolicy');
    expect(first).toMatchObject({ Sid: 'Administration', Action: [...administration, 'kms:ReplicateKey'] });
    expect(plain(others, many)).toEqual(
      plain(statementsOf(key('countersign-api-state', 'CaKeynodes'), 'KeyPolicy').slice(1), synthesis),
    );
  });

  // No emulator's CloudFormation knows this type.
  test('a replica has the policy of a key of its own, outlives its stack, and is what the functions sign with', () => {
    const [id, replica] = resource(template(many, 'countersign-api-state'), 'AWS::KMS::ReplicaKey');
    const { KeyPolicy: _, ...properties } = replica.Properties;
    expect(properties).toEqual({ Description: 'CA web of cluster api', PrimaryKeyArn: primary });
    expect(plain(statementsOf(replica, 'KeyPolicy'), many)).toEqual(
      plain(statementsOf(key('countersign-api-state', 'CaKeyweb'), 'KeyPolicy'), synthesis),
    );
    expect(replica).toMatchObject({ DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
    const sign = resource(template(many, 'countersign-api'), 'AWS::Lambda::Function', 'Sign')[1];
    expect(JSON.stringify(plain(sign.Properties['Environment'], many))).toContain(
      `countersign-api-state<${id.replace(/[0-9A-F]{8}$/, '')}.Arn>`,
    );
  });

  test.each([
    ['CaKeynodes', 'ECDSA_SHA_256', true],
    // No profile names it.
    ['CaKeyweb', 'RSASSA_PSS_SHA_384', false],
  ])('%s: administration, use and deletion are three parties, as the file names them', (id, algorithm, signsLeaves) => {
    expect(plain(statementsOf(key('countersign-api-state', id), 'KeyPolicy'), synthesis)).toEqual([
      {
        Sid: 'Administration',
        Effect: 'Allow',
        Principal: { AWS: 'arn:aws:iam::111122223333:role/admin' },
        Action: administration,
        Resource: '*',
      },
      ...use(algorithm).slice(signsLeaves ? 0 : 1),
      {
        Sid: 'Deletion',
        Effect: 'Allow',
        Principal: { AWS: 'arn:aws:iam::111122223333:role/custodian' },
        Action: ['kms:ScheduleKeyDeletion', 'kms:CancelKeyDeletion', 'kms:DescribeKey'],
        Resource: '*',
      },
      {
        Sid: 'NoOtherDeletion',
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'kms:ScheduleKeyDeletion',
        Resource: '*',
        Condition: { ArnNotEquals: { 'aws:PrincipalArn': ['arn:aws:iam::111122223333:role/custodian'] } },
      },
    ]);
  });

  test('without administrators: IAM of the account grants administration, and deletion is denied to all', () => {
    expect(plain(statementsOf(key('countersign-url-state', 'CaKeyca'), 'KeyPolicy'), synthesis)).toEqual([
      {
        Sid: 'Administration',
        Effect: 'Allow',
        Principal: { AWS: 'arn:<AWS::Partition>:iam::<AWS::AccountId>:root' },
        Action: administration,
        Resource: '*',
      },
      ...use('ECDSA_SHA_256'),
      {
        Sid: 'NoOtherDeletion',
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'kms:ScheduleKeyDeletion',
        Resource: '*',
      },
    ]);
  });

  test('an imported key: made without material, importable by those named, who cannot sign; its material cannot be deleted', () => {
    const moved = synthesise(`version: 1
clusters:
  demo:
    cas:
      ca: {kind: imported, keyMaterial: imported, keySpec: RSA-2048, subject: {commonName: kubernetes}}
      root: {subject: {commonName: demo root}, pathLen: 1}
      web: {kind: issued, issuedBy: root, subject: {commonName: demo web}}
    profiles: {kubernetes.io/kubelet-serving: {ca: ca}, kubernetes.io/kube-apiserver-client: {ca: web}}
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
    keys: {importers: ['arn:aws:iam::111122223333:role/mover']}
`);
    const of = (id: string) => resource(template(moved, 'countersign-demo-state'), 'AWS::KMS::Key', id)[1];
    expect(of('CaKeyca').Properties).toMatchObject({ Origin: 'EXTERNAL', KeySpec: 'RSA_2048' });
    expect(of('CaKeyroot').Properties).not.toHaveProperty('Origin');
    const statements = (id: string) => plain(statementsOf(of(id), 'KeyPolicy'), moved) as readonly Statement[];
    const importing = /^(LookBeforeImport|PrepareImport|ImportKey|NoDeletionOfMaterial)$/;
    const mover = { Effect: 'Allow', Principal: { AWS: 'arn:aws:iam::111122223333:role/mover' }, Resource: '*' };
    expect(statements('CaKeyca').filter(({ Sid }) => importing.test(String(Sid)))).toEqual([
      { ...mover, Sid: 'LookBeforeImport', Action: ['kms:DescribeKey', 'kms:GetPublicKey'] },
      {
        ...mover,
        Sid: 'PrepareImport',
        Action: 'kms:GetParametersForImport',
        Condition: { StringEquals: { 'kms:WrappingAlgorithm': 'RSA_AES_KEY_WRAP_SHA_256' } },
      },
      {
        ...mover,
        Sid: 'ImportKey',
        Action: 'kms:ImportKeyMaterial',
        Condition: { StringEquals: { 'kms:ExpirationModel': 'KEY_MATERIAL_DOES_NOT_EXPIRE' } },
      },
      {
        Sid: 'NoDeletionOfMaterial',
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'kms:DeleteImportedKeyMaterial',
        Resource: '*',
      },
    ]);
    // The root signs CAs only, and no principal may import where KMS makes the key.
    expect(statements('CaKeyroot').map(({ Sid }) => Sid)).toEqual([
      'Administration',
      'SignCaCertificate',
      'PublicKey',
      'NoOtherDeletion',
    ]);
    expect(statements('CaKeyweb').map(({ Sid }) => Sid)).toContain('SignCertificates');
  });

  test('in no cluster can who administers a key sign with it, hand it to others, or end it', () => {
    const keys = [...synthesis.templates.values()]
      .flatMap((of) => ofType(of, 'AWS::KMS::Key'))
      .filter(([id]) => id.startsWith('CaKey'));
    expect(keys.length).toBe(7);
    for (const [, { Properties: properties }] of keys) {
      const { Statement: statements } = properties['KeyPolicy'] as { Statement: readonly Statement[] };
      const allowed = (sid: string): string[] =>
        statements.filter(({ Sid, Effect }) => Effect === 'Allow' && Sid === sid).flatMap(({ Action }) => Action);
      const others = ['SignCertificates', 'SignCaCertificate', 'PublicKey', 'Deletion'];
      expect(
        others
          .flatMap(allowed)
          .filter((action) => allowed('Administration').includes(action))
          .sort(),
      ).toEqual(
        // The actions that read public facts, and the cancellation of a deletion.
        allowed('Deletion').length > 0
          ? ['kms:CancelKeyDeletion', 'kms:DescribeKey', 'kms:GetPublicKey']
          : ['kms:GetPublicKey'],
      );
      const all = statements.filter(({ Effect }) => Effect === 'Allow').flatMap(({ Action }) => Action);
      expect(all.filter((action) => action.includes('*') || action === 'kms:CreateGrant')).toEqual([]);
    }
  });
});

describe('the challenge key', () => {
  const statementsIn = (yaml: string): unknown => {
    const made = synthesise(yaml);
    const [, key] = resource(template(made, 'countersign-metal-state'), 'AWS::KMS::Key', 'ChallengeKey');
    return plain(statementsOf(key, 'KeyPolicy'), made);
  };
  const own = clustersNamed('metal');
  /** An HMAC key has no public key. */
  const withDeletion = [...administration.filter((action) => action !== 'kms:GetPublicKey'), 'kms:ScheduleKeyDeletion'];
  const policyFor = (administrator: string) => [
    {
      Sid: 'Administration',
      Effect: 'Allow',
      Principal: { AWS: administrator },
      Action: withDeletion,
      Resource: '*',
    },
    {
      Sid: 'MakeChallenges',
      Effect: 'Allow',
      Principal: { AWS: '<AttestRole.Arn>' },
      Action: 'kms:GenerateMac',
      Resource: '*',
      Condition: { StringEquals: { 'kms:MacAlgorithm': 'HMAC_SHA_256' } },
    },
  ];

  test('is used by attest alone, for MACs with one algorithm; who administers it makes none', () => {
    expect(statementsIn(own)).toEqual(policyFor('arn:aws:iam::111122223333:role/admin'));
    expect(statementsIn(own.replace(/^ {4}keys: .*\n/m, ''))).toEqual(policyFor('arn:aws:iam::111122223333:root'));
  });

  test('is not made for machines that are proved without a challenge, and no policy of IAM grants its use', () => {
    for (const [stack, of] of synthesis.templates) {
      const keys = ofType(of, 'AWS::KMS::Key').filter(([id]) => id.startsWith('ChallengeKey'));
      expect(keys.length).toBe(stack === 'countersign-metal-state' ? 1 : 0);
      const allowed = ofType(of, 'AWS::IAM::Policy')
        .flatMap(([, policy]) => statementsOf(policy))
        .filter(({ Effect }) => Effect === 'Allow');
      expect(JSON.stringify(allowed)).not.toContain('kms:');
    }
  });

  test('is what attest is told, and no other function', () => {
    const of = template(synthesis, 'countersign-metal');
    const functions = ofType(of, 'AWS::Lambda::Function').map(
      ([, { Properties }]) => plain(Properties['Environment'], synthesis) as { Variables: Record<string, string> },
    );
    const told = functions.flatMap(({ Variables }) => Variables['COUNTERSIGN_CHALLENGE_KEY'] ?? []);
    expect(told).toEqual(['countersign-metal-state<ChallengeKey.Arn>']);
    const attest = resource(of, 'AWS::Lambda::Function', 'Attest')[1];
    expect(JSON.stringify(attest)).toContain('COUNTERSIGN_CHALLENGE_KEY');
  });
});
