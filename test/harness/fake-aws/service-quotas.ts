/**
 * AWS Service Quotas as far as single quotas go, by its JSON protocol: whose signature and rights do not hold is refused. A quota
 * that was never changed may have no applied value; its default is asked for by a call of its own, as in AWS.
 */
import type { ReceivedRequest } from '../aws/sigv4-verifier.ts';
import { authenticate } from './protocol/authentication.ts';
import { startService, type Answer, type Service } from './service.ts';
import type { FakeAws } from './world.ts';

export interface FakeServiceQuotas extends Service {
  /** Actions and quota codes that it answered; nothing that it refused is here. */
  readonly calls: readonly string[];
  /** Values that were changed, by quota code. */
  readonly applied: Map<string, number>;
}

/** Names and defaults as docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html has them. */
export const kmsQuotas: Readonly<Record<string, { readonly name: string; readonly value: number }>> = {
  'L-6E3AF000': { name: 'Cryptographic operations (symmetric) request rate', value: 10_000 },
  'L-2AC98190': { name: 'Cryptographic operations (RSA) request rate', value: 1000 },
  'L-DC14942D': { name: 'Cryptographic operations (ECC) request rate', value: 1000 },
};

const targetPrefix = 'ServiceQuotasV20190624.';

export async function startFakeServiceQuotas({ aws }: { readonly aws: FakeAws }): Promise<FakeServiceQuotas> {
  const calls: string[] = [];
  const applied = new Map<string, number>();

  function handle(request: ReceivedRequest, port: number): Answer {
    const { method, target, headers, body } = request;
    if (method !== 'POST' || target !== '/' || headers['content-type'] !== 'application/x-amz-json-1.1')
      return refusal(404, 'UnknownOperationException', 'not of this protocol');
    const caller = authenticate(aws, request, 'servicequotas', port);
    if ('code' in caller) return refusal(caller.status, caller.code, caller.message);
    const action = (headers['x-amz-target'] ?? '').replace(targetPrefix, '');
    if (!(headers['x-amz-target'] ?? '').startsWith(targetPrefix) || !(action in actions))
      return refusal(400, 'UnknownOperationException', action);
    const { principal } = caller.credential;
    const permission = `servicequotas:${action}`;
    if (!principal.allows.some((allowed) => ['*', permission].includes(allowed)))
      return refusal(
        400,
        'AccessDeniedException',
        `User: ${principal.arn} is not authorized to perform: ${permission} because no identity-based policy allows the ${permission} action`,
      );
    const asked: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    const { ServiceCode: service, QuotaCode: code, ...unknown } = asked as Readonly<Record<string, unknown>>;
    if (typeof service !== 'string' || typeof code !== 'string' || Object.keys(unknown).length > 0)
      return refusal(400, 'IllegalArgumentException', 'ServiceCode and QuotaCode, and nothing else');
    const quota = service === 'kms' ? kmsQuotas[code] : undefined;
    const value = actions[action as keyof typeof actions](applied.get(code), quota?.value);
    if (quota === undefined || value === undefined)
      return refusal(400, 'NoSuchResourceException', 'The request failed because the specified quota does not exist.');
    calls.push(`${action} ${code} ${caller.region}`);
    const { account } = principal;
    return json(200, {
      Quota: {
        ServiceCode: service,
        ServiceName: 'AWS Key Management Service (AWS KMS)',
        QuotaArn: `arn:aws:servicequotas:${caller.region}:${account}:${service}/${code}`,
        QuotaCode: code,
        QuotaName: quota.name,
        Value: value,
        Unit: 'None',
        Adjustable: true,
        GlobalQuota: false,
      },
    });
  }

  return { ...(await startService(handle)), calls, applied };
}

const actions = {
  GetServiceQuota: (applied: number | undefined) => applied,
  GetAWSDefaultServiceQuota: (_: number | undefined, standard: number | undefined) => standard,
} as const;

function refusal(status: number, code: string, message: string): Answer {
  return json(status, { __type: code, message });
}

function json(status: number, body: object): Answer {
  return { status, contentType: 'application/x-amz-json-1.1', body: JSON.stringify(body) };
}
