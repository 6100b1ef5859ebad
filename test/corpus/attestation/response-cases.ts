/** STS's answers, its own and others that could be taken for one; and the identities that a good one may have. */
import { account, callerIdentity, credentials, failure, instanceId, json, otherAccount } from './aws-machine.ts';
import type { Case } from './judge.ts';

const notJson = ['AttestationInvalid', 'with something other than JSON'] as const;
const otherAction = ['AttestationInvalid', 'with something other than GetCallerIdentity'] as const;
const notARole = ['AttestationInvalid', 'is not signed by a role that an instance has'] as const;
const otherUserId = ['AttestationInvalid', 'a user id that is not of the same session'] as const;
const identity = callerIdentity(credentials.machine);
const said = (fields: Readonly<Record<string, unknown>>) => () =>
  json(200, {
    GetCallerIdentityResponse: {
      GetCallerIdentityResult: {
        Account: account,
        Arn: credentials.machine.arn,
        UserId: credentials.machine.userId,
        ...fields,
      },
      ResponseMetadata: { RequestId: 'r' },
    },
  });
const nodes = { requireIdentityRole: false, roles: [`arn:aws:iam::${account}:role/nodes`] };

export const responseCases: readonly Case[] = [
  {
    name: 'with a charset',
    expect: 'accepted',
    answer: (answer) => ({ ...answer, contentType: 'application/json; charset=utf-8' }),
  },
  {
    name: 'XML',
    expect: notJson,
    answer: () => ({ status: 200, contentType: 'text/xml', body: '<GetCallerIdentityResponse/>' }),
  },
  {
    name: 'XML that says it is JSON',
    expect: otherAction,
    answer: () => ({ status: 200, contentType: 'application/json', body: '<GetCallerIdentityResponse/>' }),
  },
  {
    name: 'JSON that says it is text',
    expect: notJson,
    answer: (answer) => ({ ...answer, contentType: 'text/plain' }),
  },
  { name: 'JSON of no said type', expect: notJson, answer: (answer) => ({ ...answer, contentType: '' }) },
  {
    name: 'a redirect with a good body',
    expect: ['AttestationInvalid', 'with status 302'],
    answer: (answer) => ({ ...answer, status: 302 }),
  },
  {
    name: '201 with a good body',
    expect: ['AttestationInvalid', 'with status 201'],
    answer: (answer) => ({ ...answer, status: 201 }),
  },
  {
    name: 'refused, with a good body',
    expect: ['AttestationInvalid', 'is not a signature over this request'],
    answer: (answer) => ({ ...answer, status: 403 }),
  },
  {
    name: 'expired credentials',
    expect: ['AttestationInvalid', 'its credentials are over'],
    answer: () => failure(403, 'ExpiredToken'),
  },
  {
    name: 'another error',
    expect: ['AttestationInvalid', 'with status 400'],
    answer: () => failure(400, 'ValidationError'),
  },
  { name: 'throttled', expect: ['temporary', 'asked too often'], answer: () => failure(400, 'Throttling') },
  { name: 'limited', expect: ['temporary', 'asked too often'], answer: () => failure(400, 'RequestLimitExceeded') },
  {
    name: 'an error without a code',
    expect: ['AttestationInvalid', 'with status 400'],
    answer: () => json(400, { Error: null }),
  },
  {
    name: 'refused, and said to be throttled',
    expect: ['AttestationInvalid', 'is not a signature over this request'],
    answer: () => failure(403, 'Throttling'),
  },
  {
    name: 'a good answer that says it is throttled',
    expect: 'accepted',
    answer: (answer) => ({ ...answer, body: answer.body.replace('01234567-89ab', 'Throttling') }),
  },
  {
    name: 'another action, with reflected JSON',
    expect: otherAction,
    answer: () => json(200, { GetSessionTokenResponse: { Message: JSON.stringify(identity) } }),
  },
  {
    name: 'a second response beside',
    expect: otherAction,
    answer: () => json(200, { ...identity, AssumeRoleResponse: {} }),
  },
  {
    name: 'a further field in the response',
    expect: otherAction,
    answer: () =>
      json(200, { GetCallerIdentityResponse: { ...(identity['GetCallerIdentityResponse'] as object), Evil: 1 } }),
  },
  { name: 'a further field in the result', expect: otherAction, answer: said({ Evil: 1 }) },
  {
    name: 'no metadata',
    expect: otherAction,
    answer: () => json(200, { GetCallerIdentityResponse: { GetCallerIdentityResult: {} } }),
  },
  {
    name: 'other metadata',
    expect: otherAction,
    answer: (answer) => ({ ...answer, body: answer.body.replace('RequestId', 'RequestID') }),
  },
  { name: 'a list', expect: otherAction, answer: () => json(200, [identity]) },
  { name: 'nothing', expect: otherAction, answer: () => json(200, null) },
  {
    name: 'a key twice',
    expect: otherAction,
    answer: (answer) => ({ ...answer, body: answer.body.replace('"Account"', '"Account":"1","Account"') }),
  },
  {
    name: 'a key twice, once escaped',
    expect: otherAction,
    answer: (answer) => ({ ...answer, body: answer.body.replace('"Account"', '"\\u0041ccount":"1","Account"') }),
  },
  {
    name: 'the response twice, the good one last',
    expect: otherAction,
    answer: (answer) => ({ ...answer, body: `{"GetCallerIdentityResponse":{},${answer.body.slice(1)}` }),
  },
  { name: 'text behind the JSON', expect: otherAction, answer: (answer) => ({ ...answer, body: `${answer.body} {}` }) },

  // Who it says signed.
  { name: 'a user id in a list', expect: otherUserId, answer: said({ UserId: [credentials.machine.userId] }) },
  {
    name: "a role's user id in a list",
    expect: otherUserId,
    policy: nodes,
    answer: said({ Arn: credentials.nodeRole.arn, UserId: [credentials.nodeRole.userId] }),
  },
  { name: 'a user', expect: notARole, answer: said({ Arn: credentials.user.arn, UserId: credentials.user.userId }) },
  { name: 'the root user', expect: notARole, answer: said({ Arn: `arn:aws:iam::${account}:root`, UserId: account }) },
  {
    name: 'a federated user',
    expect: notARole,
    answer: said({ Arn: `arn:aws:sts::${account}:federated-user/${instanceId}` }),
  },
  { name: 'no ARN', expect: notARole, answer: said({ Arn: null }) },
  { name: 'an ARN in a list', expect: notARole, answer: said({ Arn: [credentials.machine.arn] }) },
  {
    name: 'an ARN of another partition',
    expect: notARole,
    answer: said({ Arn: credentials.machine.arn.replace('aws', 'aws-iso') }),
  },
  {
    name: 'an ARN of another service',
    expect: notARole,
    answer: said({ Arn: credentials.machine.arn.replace(':sts:', ':iam:') }),
  },
  { name: 'an ARN with more behind it', expect: notARole, answer: said({ Arn: `${credentials.machine.arn}/x` }) },
  { name: 'an ARN with a line before it', expect: notARole, answer: said({ Arn: `x\n${credentials.machine.arn}` }) },
  {
    name: 'a role whose name is like the identity role',
    expect: notARole,
    answer: said({ Arn: `arn:aws:sts::${account}:assumed-role/aws:ec2-infrastructure/${instanceId}` }),
  },
  {
    name: 'a session that is no instance',
    expect: notARole,
    policy: nodes,
    presign: { credential: credentials.otherSession },
  },
  {
    name: 'two accounts',
    expect: ['AttestationInvalid', 'with two accounts'],
    answer: said({ Account: otherAccount }),
  },
  {
    name: 'the user id of another session',
    expect: otherUserId,
    answer: said({ UserId: `${account}:aws:ec2-instance:i-00000000` }),
  },
  {
    name: 'a role with the user id of the identity role',
    expect: otherUserId,
    policy: nodes,
    answer: said({ Arn: credentials.nodeRole.arn }),
  },
  {
    name: 'the identity role with the user id of a role',
    expect: otherUserId,
    answer: said({ UserId: credentials.nodeRole.userId }),
  },
  {
    name: 'a role with a user id of another session',
    expect: otherUserId,
    policy: nodes,
    answer: said({ Arn: credentials.nodeRole.arn, UserId: 'AROAQQQQQQQQQQQQQQQQ:i-0123456789abcdef1' }),
  },
  {
    name: "a role with a user's id",
    expect: otherUserId,
    policy: nodes,
    answer: said({ Arn: credentials.nodeRole.arn, UserId: `AIDAQQQQQQQQQQQQQQQQ:${instanceId}` }),
  },
  {
    name: 'another account',
    expect: ['AttestationInvalid', 'is of another account than the evidence says'],
    presign: { credential: credentials.otherAccount },
  },
  {
    name: 'another partition',
    expect: ['AttestationInvalid', 'is of another partition than the evidence says'],
    presign: { credential: credentials.otherPartition },
  },
  {
    name: 'another instance of the same account, which claims to be this one',
    expect: ['AttestationInvalid', 'is of another instance than the evidence says'],
    presign: { credential: credentials.otherMachine },
  },
  {
    name: "another instance of the same account, with this one's document",
    version: 'aws/v1',
    expect: ['AttestationInvalid', 'is of another instance than the evidence says'],
    presign: { credential: credentials.otherMachine },
  },
  {
    name: 'another instance claimed than the one that signed',
    expect: ['AttestationInvalid', 'is of another instance than the evidence says'],
    data: { instance: credentials.otherMachine.arn.slice(-19) },
  },
  {
    name: "a role's session named after the instance",
    expect: ['AttestationInvalid', 'not signed by the instance identity role'],
    presign: { credential: credentials.nodeRole },
  },
  {
    name: "a node role's session, where it counts only without the rule",
    expect: ['AttestationInvalid', 'not signed by the instance identity role'],
    policy: { roles: nodes.roles },
    presign: { credential: credentials.nodeRole },
  },
  { name: "a node role's session", expect: 'accepted', policy: nodes, presign: { credential: credentials.nodeRole } },
  {
    name: "a node role's session, the role under a path",
    expect: 'accepted',
    policy: { ...nodes, roles: [`arn:aws:iam::${account}:role/eks/blue/nodes`] },
    presign: { credential: credentials.nodeRole },
  },
  {
    name: "a role's session named after the instance, with its document",
    version: 'aws/v1',
    expect: ['AttestationInvalid', 'not signed by the instance identity role'],
    presign: { credential: credentials.nodeRole },
  },
  { name: 'the identity role where roles count too', expect: 'accepted', policy: nodes },
  {
    name: 'another role',
    expect: ['AttestationInvalid', "which is no node's"],
    policy: nodes,
    presign: { credential: credentials.otherRole },
  },
  {
    name: 'any role where none is a node role',
    expect: ['AttestationInvalid', "which is no node's"],
    policy: { ...nodes, roles: [] },
    presign: { credential: credentials.nodeRole },
  },
  {
    name: 'a node role of another account',
    expect: ['AttestationInvalid', "which is no node's"],
    policy: { ...nodes, roles: [`arn:aws:iam::${otherAccount}:role/nodes`] },
    presign: { credential: credentials.nodeRole },
  },
  {
    name: 'a node role whose name only ends alike',
    expect: ['AttestationInvalid', "which is no node's"],
    policy: { ...nodes, roles: [`arn:aws:iam::${account}:role/other-nodes`] },
    presign: { credential: credentials.nodeRole },
  },
];
