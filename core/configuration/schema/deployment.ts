/**
 * The part of a cluster in countersign.yaml that says how it runs on AWS: callers, limits, alarms. The signing rules are in
 * cluster.ts; how values must fit together is checked in core/configuration/resolve/deployment.ts.
 */
import { z } from 'zod';
import { accountId, countOr, matching, region, text } from '../fields/values.ts';

const count = (least: number, most: number) => z.int().min(least).max(most);

/** With a wildcard, any principal that can create a role with a matching name would get access. */
const principal = matching(
  /^arn:aws(-[a-z]+)*:iam::[0-9]{12}:(root|(role|user)\/[\w+=,.@/-]+)$/,
  'must be the ARN of one role, user or account (…:root), such as arn:aws:iam::111122223333:role/watch-relay; no wildcards',
).max(2048);

const principals = z.array(principal);

const topic = matching(
  /^arn:aws(-[a-z]+)*:sns:[a-z0-9-]+:[0-9]{12}:[\w-]{1,256}$/,
  'must be the ARN of an SNS topic, such as arn:aws:sns:eu-central-1:111122223333:alerts',
);

const domain = z
  .strictObject({
    name: matching(
      /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
      'must be a DNS name in lower case, such as sign.example.com',
    )
      .max(253)
      .exactOptional()
      .describe('The name. Required; another one for each authentication method.'),
    certificate: matching(
      /^arn:aws(-[a-z]+)*:acm:[a-z0-9-]+:[0-9]{12}:certificate\/[\w-]+$/,
      'must be the ARN of a certificate of ACM, such as arn:aws:acm:eu-central-1:111122223333:certificate/…',
    )
      .exactOptional()
      .describe('ARN of a certificate of ACM for this name, in the region of the stacks. Required.'),
  })
  .exactOptional()
  .describe(
    'A DNS name of yours for the HTTP API of this authentication method, besides the one that AWS gives. Default: none.',
  );

const jwt = z.strictObject({
  issuer: matching(/^https:\/\/[^\s?#@]+$/, 'must be an https URL without user, query or fragment')
    .max(512)
    .exactOptional()
    .describe('The `iss` claim, exactly: what kube-apiserver has as `--service-account-issuer`. Required.'),
  audience: text
    .exactOptional()
    .describe('What the `aud` claim must hold: a name that only this endpoint has. Required.'),
  subjects: z
    .array(
      matching(
        /^system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+$/,
        'must be one service account, system:serviceaccount:<namespace>:<name>; no wildcards',
      ).max(400),
    )
    .default([])
    .describe(
      'The `sub` claims let in, exactly: `system:serviceaccount:<namespace>:<name>`. Required, since any author of pods can get a token for an audience.',
    ),
  jwks: z
    .string()
    .max(65_536)
    .exactOptional()
    .describe(
      'The issuer’s public keys, for an issuer that cannot be reached from AWS: the JSON of `kubectl get --raw /openid/v1/jwks`. Default: fetched from the issuer.',
    ),
  domain,
});

const access = z.strictObject({
  iam: z
    .strictObject({
      principals: principals
        .default([])
        .describe('Who may assume the caller role of the cluster: roles of relays, in other accounts too. Required.'),
      everyNodeMayAskForCertificates: principals
        .default([])
        .describe(
          'Those of `principals` that are roles of nodes, spelled out once more: each such node, and each pod there that reaches the instance metadata, may then ask for certificates in any name. Default: none; a role of nodes is refused.',
        ),
      domain,
    })
    .exactOptional()
    .describe('Callers with AWS credentials: requests are signed (SigV4).'),
  jwt: jwt
    .exactOptional()
    .describe('Callers with a service-account token, on an HTTP API of their own. Not with `frontDoor: functionUrl`.'),
});

export const throttle = z.strictObject({
  rate: count(1, 10_000)
    .default(200)
    .describe('Calls a second by each authentication method; each may be one signature of KMS.'),
  burst: count(1, 5000).default(400).describe('Calls at once before the rate begins to hold.'),
});

const limits = z.strictObject({
  reservedConcurrency: countOr('none', 1, 1000)
    .default(40)
    .describe(
      'Signing functions at work at once, reserved in the account. More than a relay’s `--concurrency`. `none`: no reservation; the functions share the unreserved part with all others of the account.',
    ),
  throttle: throttle
    .exactOptional()
    .describe('How many calls the endpoint lets through. Not with `frontDoor: functionUrl`, which cannot throttle.'),
  inFlightPerRequester: count(1, 256)
    .default(24)
    .describe(
      'Requests of one requester that the relay has in hand at once. More wait, and none is dropped: a whole pool of nodes may share one token. Of the 32 that it works on in all, so that some are always left for others.',
    ),
});

const alarms = z.strictObject({
  topics: z
    .array(topic)
    .default([])
    .describe('SNS topics that are notified when an alarm is raised and when it ends. Default: none.'),
  caDaysLeft: count(1, 3650).default(90).describe('Alarm when a CA certificate has fewer days left.'),
  refusals: count(1, 1_000_000)
    .default(20)
    .describe(
      'Alarm at so many refusals in five minutes, of all reasons together. Reasons that tell of an attack: at the first.',
    ),
});

const keys = z.strictObject({
  administrators: principals
    .exactOptional()
    .describe(
      'The principals that may change policy, tags and state of the CA keys; CloudFormation’s own role must be among them. Default: those that IAM of the account permits.',
    ),
  deleters: principals
    .default([])
    .describe('Who may schedule the deletion of a CA key. Default: no principal, until the key policy is changed.'),
  importers: principals
    .default([])
    .describe(
      'Who may import the key of a CA with `keyMaterial: imported` (`countersign ca import-key`). None of them can sign with it. Required where there is such a CA.',
    ),
});

const logs = z.strictObject({
  // The periods of CloudWatch Logs: docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
  retentionDays: z
    .literal([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653])
    .default(365)
    .describe('How long they are kept.'),
});

const aws = z.strictObject({
  account: accountId.exactOptional().describe('Account, in quotes. Default: that of the credentials deployed with.'),
  region: region.exactOptional().describe('Region. Default: that of the credentials deployed with.'),
});

/** The keys of a cluster that are about AWS. */
export const deploymentShape = {
  frontDoor: z
    .enum(['httpApi', 'functionUrl'])
    .default('httpApi')
    .describe('How the sign function is reached: by an API Gateway HTTP API, or by a Lambda function URL.'),
  access: access.prefault({}).describe('Who may call. Deployed clusters need at least one authentication method.'),
  limits: limits.prefault({}).describe('How much the cluster may use.'),
  alarms: alarms.prefault({}).describe('When alarms are raised, and where they are sent.'),
  dashboard: z
    .boolean()
    .default(false)
    .describe(
      'Whether the stack has a CloudWatch dashboard. An account has three for nothing; a further one costs more than the rest of an idle cluster.',
    ),
  keys: keys.prefault({}).describe('Who administers the CA keys. None of these principals can sign with them.'),
  logs: logs.prefault({}).describe('Logs of functions and endpoint.'),
  aws: aws.prefault({}).describe('Where the stacks are.'),
};

const deployment = z.strictObject(deploymentShape);
export type DeploymentInput = z.output<typeof deployment>;
export type JwtInput = z.output<typeof jwt>;
