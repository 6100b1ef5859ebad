/** AccountView with the SDK's clients and the operator's AWS login. */
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { GetRoleCommand, GetUserCommand, IAMClient } from '@aws-sdk/client-iam';
import { GetAccountSettingsCommand, GetFunctionConcurrencyCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { GetParametersCommand, SSMClient } from '@aws-sdk/client-ssm';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { describeStack, noSuchEntity, undefinedIf } from './calls.ts';
import { clientOptions } from './client-options.ts';
import type { AccountView } from '../runtime/account-view.ts';

export interface AccountLogin {
  readonly endpoint?: string;
  readonly credentials?: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
}

/** `region` and `login`: default: as for the aws command line. */
export function connectAccount(region: string | undefined, { endpoint, credentials }: AccountLogin = {}): AccountView {
  const options = {
    ...clientOptions(),
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  };
  const sts = new STSClient(options);
  const lambda = new LambdaClient(options);
  const quotas = new ServiceQuotasClient(options);
  const iam = new IAMClient(options);
  const formation = new CloudFormationClient(options);
  let answeredAt: number | undefined;
  sts.middlewareStack.add(
    (next) => async (call) => {
      const answered = await next(call);
      const { headers = {} } = (answered.response ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
      const at = Date.parse(headers['date'] ?? '');
      if (!Number.isNaN(at)) answeredAt = at;
      return answered;
    },
    { step: 'deserialize', name: 'timeOfTheAnswer' },
  );
  return {
    region: () => sts.config.region(),

    answeredAt: () => answeredAt,

    async callerArn() {
      const { Arn: arn } = await sts.send(new GetCallerIdentityCommand());
      return needed(arn, 'the ARN of the caller');
    },

    async parameters(names, where) {
      const ssm = new SSMClient({ ...options, ...(where === undefined ? {} : { region: where }) });
      try {
        const { Parameters: found = [] } = await ssm.send(new GetParametersCommand({ Names: [...names] }));
        return new Map(found.map(({ Name: name = '', Value: value = '' }) => [name, value]));
      } finally {
        ssm.destroy();
      }
    },

    async concurrency() {
      const { AccountLimit: limit } = await lambda.send(new GetAccountSettingsCommand());
      return {
        limit: needed(limit?.ConcurrentExecutions, 'ConcurrentExecutions'),
        unreserved: needed(limit?.UnreservedConcurrentExecutions, 'UnreservedConcurrentExecutions'),
      };
    },

    async reservedBy(functionName) {
      const asked = lambda.send(new GetFunctionConcurrencyCommand({ FunctionName: functionName }));
      const answer = await asked.catch(undefinedIf('ResourceNotFoundException'));
      return answer?.ReservedConcurrentExecutions ?? 0;
    },

    async quota(service, code) {
      const which = { ServiceCode: service, QuotaCode: code };
      // A quota that was never changed may have no applied value.
      const applied = await quotas
        .send(new GetServiceQuotaCommand(which))
        .catch(undefinedIf('NoSuchResourceException'));
      const { Quota: quota } = applied ?? (await quotas.send(new GetAWSDefaultServiceQuotaCommand(which)));
      return { name: needed(quota?.QuotaName, 'QuotaName'), value: needed(quota?.Value, 'Value') };
    },

    async principal(kind, name) {
      if (kind === 'role') {
        const role = iam.send(new GetRoleCommand({ RoleName: name }));
        return (await role.catch(undefinedIf(...noSuchEntity)))?.Role?.Arn;
      }
      const user = iam.send(new GetUserCommand({ UserName: name }));
      return (await user.catch(undefinedIf(...noSuchEntity)))?.User?.Arn;
    },

    async stack(name) {
      const stack = await describeStack(formation, name);
      if (stack === undefined) return undefined;
      const tags = new Map((stack.Tags ?? []).map(({ Key: key = '', Value: value = '' }) => [key, value]));
      return { status: needed(stack.StackStatus, 'StackStatus'), tags };
    },

    close() {
      for (const client of [sts, lambda, quotas, iam, formation]) client.destroy();
    },
  };
}

function needed<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the answer has no ${name}`);
  return value;
}
