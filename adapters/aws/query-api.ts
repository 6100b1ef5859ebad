/**
 * Two questions that an operator's command has of AWS besides those to its table: who am I, and what did the deployment
 * call it. Both by AWS's Query protocol, signed with the login that an SDK client found; a client of each service would
 * be two more dependencies for two calls.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
 */
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { partitionOf } from '../../core/attestation/aws/partition.ts';

/** `config` of any client of the SDK has these. */
export interface AwsLogin {
  region(): Promise<string>;
  credentials(): Promise<ConstructorParameters<typeof SignatureV4>[0]['credentials']>;
}

export interface AwsQueryOptions {
  readonly login: AwsLogin;
  readonly now: () => number;
  /** For AWS_ENDPOINT_URL and its kind, which the SDK's clients obey by themselves. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** AWS's own word: a wrong login, a missing right, no such stack. */
export class AwsRefusal extends Error {
  override readonly name = 'AwsRefusal';
  readonly code: string;
  readonly status: number;

  constructor(code: string, status: number, message: string) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const milliseconds = 15_000;

/** ARN of whoever is logged in. STS tells it to everybody. */
export async function callerArn(options: AwsQueryOptions): Promise<string> {
  const xml = await query(options, 'sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' });
  const arn = element(xml, 'Arn');
  if (arn === undefined || !arn.startsWith('arn:')) throw new Error('STS gave no ARN');
  return arn;
}

/** An output of a stack, if it has that one. Needs `cloudformation:DescribeStacks` on it. */
export async function stackOutput(options: AwsQueryOptions, stack: string, key: string): Promise<string | undefined> {
  const xml = await query(options, 'cloudformation', {
    Action: 'DescribeStacks',
    Version: '2010-05-15',
    StackName: stack,
  });
  const members = [...xml.matchAll(/<member>((?:(?!<member>)[^])*?)<\/member>/g)].map(([, member = '']) => member);
  const found = members.find((member) => element(member, 'OutputKey') === key);
  return found === undefined ? undefined : element(found, 'OutputValue');
}

async function query(
  { login, now, environment }: AwsQueryOptions,
  service: 'sts' | 'cloudformation',
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const region = await login.region();
  const given = environment[`AWS_ENDPOINT_URL_${service.toUpperCase()}`] ?? environment['AWS_ENDPOINT_URL'];
  const suffix = partitionOf(region)?.dnsSuffix ?? 'amazonaws.com';
  const url = new URL(given === undefined || given === '' ? `https://${service}.${region}.${suffix}/` : given);
  const body = new URLSearchParams(parameters).toString();
  const signer = new SignatureV4({ service, region, credentials: await login.credentials(), sha256: Sha256 });
  const { headers } = await signer.sign(
    {
      method: 'POST',
      protocol: url.protocol,
      hostname: url.hostname,
      path: '/',
      query: {},
      headers: { host: url.host, 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
      body,
    },
    { signingDate: new Date(now()) },
  );
  const { host: _, ...sent } = headers;
  const answer = await fetch(new URL('/', url), {
    method: 'POST',
    headers: sent,
    body,
    redirect: 'error',
    signal: AbortSignal.timeout(milliseconds),
  });
  const xml = await answer.text();
  if (answer.ok) return xml;
  const code = element(xml, 'Code') ?? `HTTP ${answer.status}`;
  throw new AwsRefusal(code, answer.status, element(xml, 'Message') ?? code);
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

/** The first of that name. These answers are AWS's own and have neither attributes nor sections of raw text in them. */
function element(xml: string, name: string): string | undefined {
  const [, text] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? [];
  return text?.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, entity: string) => entities[entity] ?? '');
}
