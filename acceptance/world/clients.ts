/** AWS clients that count their calls, for the cost and for the report. */
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { CloudTrailClient } from '@aws-sdk/client-cloudtrail';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EC2Client } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SSMClient } from '@aws-sdk/client-ssm';
import { STSClient } from '@aws-sdk/client-sts';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface Clients {
  /** Of these clients, for another that asks in the same name. */
  readonly options: ConnectOptions;
  readonly sts: STSClient;
  readonly iam: IAMClient;
  readonly formation: CloudFormationClient;
  readonly s3: S3Client;
  readonly lambda: LambdaClient;
  readonly dynamodb: DynamoDBClient;
  readonly kms: KMSClient;
  readonly logs: CloudWatchLogsClient;
  readonly cloudwatch: CloudWatchClient;
  readonly cloudtrail: CloudTrailClient;
  readonly ec2: EC2Client;
  readonly ssm: SSMClient;
  /** The same with the credentials of a session; counted together. */
  as(credentials: Credentials): Clients;
  close(): void;
}

export interface ConnectOptions {
  readonly region: string;
  readonly endpoint?: string;
  /** Default: those that the SDK finds. */
  readonly credentials?: Credentials;
}

type Handler = (given: unknown) => Promise<unknown>;
interface Middleware {
  add(
    middleware: (next: Handler, context: { readonly clientName?: string; readonly commandName?: string }) => Handler,
    options: { readonly step: 'initialize'; readonly name: string },
  ): void;
}

/** `count` is called once for each call, with its name: `KMS Sign`. Repeated attempts of the SDK are not counted. */
export function connect(options: ConnectOptions, count: (call: string) => void): Clients {
  const configuration = {
    ...options,
    // A refusal does not pass by itself, and a throttled call does.
    maxAttempts: 4,
    requestHandler: { connectionTimeout: 5_000, requestTimeout: 60_000, throwOnRequestTimeout: true },
  };
  const clients = {
    sts: new STSClient(configuration),
    iam: new IAMClient(configuration),
    formation: new CloudFormationClient(configuration),
    s3: new S3Client({ ...configuration, ...(options.endpoint === undefined ? {} : { forcePathStyle: true }) }),
    lambda: new LambdaClient(configuration),
    dynamodb: new DynamoDBClient(configuration),
    kms: new KMSClient(configuration),
    logs: new CloudWatchLogsClient(configuration),
    cloudwatch: new CloudWatchClient(configuration),
    cloudtrail: new CloudTrailClient(configuration),
    ec2: new EC2Client(configuration),
    ssm: new SSMClient(configuration),
  };
  const opened: Clients[] = [];
  for (const client of Object.values(clients)) {
    // The stacks of the clients differ in the types of their commands only.
    const stack = client.middlewareStack as unknown as Middleware;
    stack.add(
      (next, { clientName = '', commandName = '' }) =>
        (given) => {
          count(`${clientName.replace(/Client$/, '')} ${commandName.replace(/Command$/, '')}`);
          return next(given);
        },
      { step: 'initialize', name: 'countCalls' },
    );
  }
  return {
    options,
    ...clients,
    as(credentials) {
      const session = connect({ ...options, credentials }, count);
      opened.push(session);
      return session;
    },
    close() {
      for (const client of Object.values(clients)) client.destroy();
      for (const session of opened) session.close();
    },
  };
}
