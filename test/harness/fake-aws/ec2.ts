/**
 * AWS EC2 as far as DescribeInstances and GetInstanceTpmEkPub go, by its Query protocol. A caller sees the instances of its own account, in the
 * region that its signature is for; what EC2 would refuse in a request is refused here by EC2's codes, and what it would
 * quietly pass over too.
 */
import { randomUUID } from 'node:crypto';
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import { authenticate, type AwsError } from './protocol/authentication.ts';
import { describeReservation, endorsementKeyAnswer, stateCode } from './protocol/ec2-xml.ts';
import type { FakeInstance } from './machine/instance.ts';
import { readQueryProtocol, type Parameters } from './protocol/query-protocol.ts';
import { escapeXml, startService, type Answer, type Service } from './service.ts';
import type { FakeAws } from './world.ts';

export interface FakeEc2 extends Service {
  /** What EC2 answered, in order; nothing that it refused for signature, right or form is here. */
  readonly calls: readonly Ec2Call[];
  /** The instance is not found that many times yet, although IMDS works: EC2 is eventually consistent. */
  hide(instanceId: string, times: number): void;
  /** From now on, until `mend`, the next `fail`, or so many times. */
  fail(status: number, code: string, message: string, times?: number): void;
}

export interface Ec2Call {
  readonly action: string;
  readonly signedBy: string;
  readonly account: string;
  readonly region: string;
  readonly parameters: Parameters;
}

const version = '2016-11-15';
const namespace = `http://ec2.amazonaws.com/doc/${version}/`;

/** The supported filters; any other is refused, as EC2 refuses what it does not know. */
const filters: Readonly<Record<string, (instance: FakeInstance) => readonly string[]>> = {
  'availability-zone': ({ availabilityZone }) => [availabilityZone],
  'instance-id': ({ instanceId }) => [instanceId],
  'instance-state-code': ({ state }) => [String(stateCode[state])],
  'instance-state-name': ({ state }) => [state],
  'private-dns-name': ({ privateDnsName }) => [privateDnsName],
  'private-ip-address': ({ interfaces }) => (interfaces[0]?.addresses ?? []).slice(0, 1).map(({ address }) => address),
  'subnet-id': ({ subnetId }) => [subnetId],
  'tag-key': ({ tags }) => Object.keys(tags),
  'vpc-id': ({ vpcId }) => [vpcId],
};

export async function startFakeEc2({ aws }: { readonly aws: FakeAws }): Promise<FakeEc2> {
  const calls: Ec2Call[] = [];
  const hidden = new Map<string, number>();
  /** What is left of a description that was given in part. */
  const pages = new Map<string, readonly FakeInstance[]>();
  let failures: { error: AwsError; left: number }[] = [];

  function handle(request: ReceivedRequest, port: number): Answer {
    const [failure] = failures;
    if (failure !== undefined) {
      failure.left -= 1;
      if (failure.left <= 0) failures.shift();
      return errorAnswer(failure.error);
    }
    const answer = answerTo(request, port);
    return typeof answer === 'string' ? xmlAnswer(200, answer) : errorAnswer(answer);
  }

  function answerTo(request: ReceivedRequest, port: number): string | AwsError {
    const read = readQueryProtocol(request);
    if ('code' in read) return read;
    const caller = authenticate(aws, request, 'ec2', port);
    // EC2 has one code for whatever is wrong with a signature.
    if ('code' in caller)
      return caller.status === 421
        ? caller
        : { status: 401, code: 'AuthFailure', message: 'AWS was not able to validate the provided access credentials' };
    const { Action: action = '', Version: said, ...parameters } = read.parameters;
    if ((action !== 'DescribeInstances' && action !== 'GetInstanceTpmEkPub') || said !== version)
      return invalid('InvalidAction', `The action ${action} is not valid for this web service.`);

    const { principal, accessKeyId } = caller.credential;
    if (!principal.allows.some((allowed) => ['*', 'ec2:*', `ec2:${action}`].includes(allowed)))
      return {
        status: 403,
        code: 'UnauthorizedOperation',
        message: `You are not authorized to perform this operation. User: ${principal.arn} is not authorized to perform: ec2:${action} because no identity-based policy allows the ec2:${action} action`,
      };
    const { account } = principal;
    const { region } = caller;
    const owned = [...aws.instances.values()].filter(
      (instance) => instance.account === account && instance.region === region,
    );
    const result = action === 'DescribeInstances' ? describe(owned, parameters) : nameKey(owned, parameters);
    calls.push({ action, signedBy: accessKeyId, account, region, parameters });
    return result;
  }

  function describe(owned: readonly FakeInstance[], parameters: Parameters): string | AwsError {
    const question = readQuestion(parameters);
    if ('code' in question) return question;
    const { ids, wanted, maxResults, nextToken } = question;
    const malformed = ids.find((id) => !/^i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(id));
    if (malformed !== undefined) return invalid('InvalidInstanceID.Malformed', `Invalid id: "${malformed}"`);
    // All are met by one question about them.
    const unseen = ids.filter((id) => !visible(id) || !owned.some(({ instanceId }) => instanceId === id));
    if (unseen.length === 1)
      return invalid('InvalidInstanceID.NotFound', `The instance ID '${unseen[0]}' does not exist`);
    if (unseen.length > 1)
      return invalid('InvalidInstanceID.NotFound', `The instance IDs '${unseen.join(', ')}' do not exist`);

    const rest = nextToken === undefined ? undefined : pages.get(nextToken);
    if (nextToken !== undefined && rest === undefined)
      return invalid('InvalidParameterValue', 'The token is not valid');
    const matching =
      rest ??
      owned.filter(
        (instance) =>
          (ids.length === 0 || ids.includes(instance.instanceId)) &&
          wanted.every(({ of, values }) =>
            of(instance).some((value) => values.some((pattern) => globMatches(pattern, value))),
          ),
      );
    const page = matching.slice(0, maxResults ?? matching.length);
    const left = matching.slice(page.length);
    let token = '';
    if (left.length > 0) {
      token = randomUUID();
      pages.set(token, left);
    }
    return describeReservation(namespace, page, token);
  }

  function nameKey(owned: readonly FakeInstance[], parameters: Parameters): string | AwsError {
    const { InstanceId: instanceId = '', KeyType: keyType = '', KeyFormat: keyFormat = '', ...others } = parameters;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) return invalid('UnknownParameter', `The parameter ${unknown} is not recognized`);
    if (instanceId === '' || keyType === '' || keyFormat === '')
      return invalid('MissingParameter', 'The request must contain the parameters InstanceId, KeyType and KeyFormat');
    if (!['rsa-2048', 'ecc-sec-p384'].includes(keyType) || keyFormat !== 'der')
      return invalid('InvalidParameterValue', 'Value for parameter KeyType or KeyFormat is invalid');
    const instance = owned.find((each) => each.instanceId === instanceId);
    if (instance === undefined || !visible(instanceId))
      return invalid('InvalidInstanceID.NotFound', `The instance ID '${instanceId}' does not exist`);
    const key = instance.nitroTpm?.[keyType as 'rsa-2048'];
    // Which code EC2 has for this is not documented.
    if (key === undefined) return invalid('UnsupportedOperation', 'The instance has no NitroTPM');
    return endorsementKeyAnswer(namespace, { instanceId, keyType, keyFormat, keyValue: key.toString('base64') });
  }

  function visible(instanceId: string): boolean {
    const left = hidden.get(instanceId) ?? 0;
    hidden.set(instanceId, left - 1);
    return left <= 0;
  }

  const service = await startService(handle);
  return {
    ...service,
    calls,
    hide: (instanceId, times) => void hidden.set(instanceId, times),
    fail(status, code, message, times = Infinity) {
      failures = failures.filter(({ left }) => left !== Infinity);
      failures.push({ error: { status, code, message }, left: times });
    },
    mend() {
      failures = [];
      hidden.clear();
      service.mend();
    },
  };
}

interface Question {
  readonly ids: readonly string[];
  readonly wanted: readonly {
    readonly of: (instance: FakeInstance) => readonly string[];
    readonly values: readonly string[];
  }[];
  readonly maxResults: number | undefined;
  readonly nextToken: string | undefined;
}

function readQuestion(parameters: Parameters): Question | AwsError {
  const { MaxResults: max, NextToken: nextToken, ...listed } = parameters;
  const known = /^(?:InstanceId\.\d+|Filter\.\d+\.(?:Name|Value\.\d+))$/;
  const unknown = Object.keys(listed).find((name) => !known.test(name));
  if (unknown !== undefined) return invalid('UnknownParameter', `The parameter ${unknown} is not recognized`);
  const ids = members(listed, 'InstanceId');
  const wanted: Question['wanted'][number][] = [];
  for (let number = 1; listed[`Filter.${number}.Name`] !== undefined; number += 1) {
    const name = listed[`Filter.${number}.Name`] ?? '';
    const tag = /^tag:(.+)$/.exec(name)?.[1];
    const of =
      tag === undefined
        ? Object.hasOwn(filters, name)
          ? filters[name]
          : undefined
        : ({ tags }: FakeInstance) => (Object.hasOwn(tags, tag) ? [tags[tag] ?? ''] : []);
    if (of === undefined) return invalid('InvalidParameterValue', `The filter '${name}' is invalid`);
    const values = members(listed, `Filter.${number}.Value`);
    if (values.length === 0) return invalid('InvalidParameterValue', 'The filter has no values');
    wanted.push({ of, values });
  }
  // A list with a gap, or from another number on, would be read short.
  const counted = ids.length + wanted.reduce((sum, { values }) => sum + 1 + values.length, 0);
  if (counted !== Object.keys(listed).length)
    return invalid('InvalidParameterValue', 'A list does not count from 1 without a gap');
  if (ids.length > 0 && (max !== undefined || nextToken !== undefined))
    return invalid(
      'InvalidParameterCombination',
      'The parameter instancesSet cannot be used with the parameter maxResults',
    );
  const maxResults = max === undefined ? undefined : Number(max);
  if (maxResults !== undefined && !(Number.isInteger(maxResults) && maxResults >= 5 && maxResults <= 1000))
    return invalid(
      'InvalidParameterValue',
      `Value ( ${max} ) for parameter maxResults is invalid. Expecting a value greater than 5.`,
    );
  return { ids, wanted, maxResults, nextToken };
}

function members(parameters: Parameters, name: string): readonly string[] {
  const found: string[] = [];
  for (let value = parameters[`${name}.1`]; value !== undefined; value = parameters[`${name}.${found.length + 1}`])
    found.push(value);
  return found;
}

/** Filters know `*` and `?`. */
function globMatches(pattern: string, value: string): boolean {
  const source = pattern
    .replace(/[\\^$.|+()[\]{}]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's').test(value);
}

function xmlAnswer(status: number, body: string): Answer {
  return { status, contentType: 'text/xml;charset=UTF-8', body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}` };
}

function errorAnswer({ status, code, message }: AwsError): Answer {
  const error = `<Error><Code>${code}</Code><Message>${escapeXml(message)}</Message></Error>`;
  return xmlAnswer(status, `<Response><Errors>${error}</Errors><RequestID>${randomUUID()}</RequestID></Response>`);
}

function invalid(code: string, message: string): AwsError {
  return { status: 400, code, message };
}
