/** Whether the account's quotas hold what countersign.yaml takes from them. */
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import { ask } from './check.ts';
import type { Check, PlannedCluster, Site } from './check.ts';

/** Lambda keeps this much for functions that reserve nothing: docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html */
const mustStayUnreserved = 100;
/** `Concurrent executions`. */
const concurrencyQuota = 'L-B99A9384';

/** The functions of a cluster that reserve concurrency (lib/functions.ts), and how much each; a test compares it with the templates. */
export function reservations({ cluster, deployment }: PlannedCluster): ReadonlyMap<string, number> {
  const { access, limits } = deployment;
  const each = limits.reservedConcurrency;
  if (each === 'none') return new Map();
  const services = [
    'sign' as const,
    ...(cluster.attestation === undefined ? [] : ['attest' as const]),
    ...(access.jwt === undefined ? [] : ['authorizer' as const]),
  ];
  return new Map(services.map((service) => [functionName(cluster.name, service), each]));
}

export async function checkConcurrency({ view, region, clusters }: Site): Promise<Check[]> {
  const wanted = new Map(clusters.flatMap((planned) => [...reservations(planned)]));
  const sum = [...wanted.values()].reduce((total, each) => total + each, 0);
  const row = {
    id: 'concurrency',
    check: `Lambda can reserve ${sum} executions and keep ${mustStayUnreserved} unreserved`,
  } as const;
  if (sum === 0) return [{ ...row, result: 'pass', seen: 'countersign.yaml reserves nothing' }];
  const account = await ask(view.concurrency(), 'lambda:GetAccountSettings');
  if (!account.ok) return [{ ...row, ...account.problem }];
  // A cluster that was deployed before has taken its part from `unreserved` already.
  const had = await ask(
    Promise.all([...wanted.keys()].map((name) => view.reservedBy(name))),
    'lambda:GetFunctionConcurrency',
  );
  const { limit, unreserved } = account.value;
  const taken = had.ok ? had.value.reduce((total, each) => total + each, 0) : 0;
  const missing = mustStayUnreserved - (unreserved + taken - sum);
  const before = taken === 0 ? '' : `, ${taken} are reserved by these clusters already`;
  const seen = `${unreserved} of ${limit} are unreserved${before}`;
  if (missing <= 0) return [{ ...row, result: 'pass', seen }];
  // Without knowing what is reserved already, too little may be enough.
  if (!had.ok) return [{ ...row, ...had.problem, seen: `${seen}; ${had.problem.seen}` }];
  const mend = `aws service-quotas request-service-quota-increase --service-code lambda --quota-code ${concurrencyQuota} --desired-value ${limit + missing} --region ${region}, or less in limits.reservedConcurrency, which may be none`;
  return [{ ...row, result: 'fail', seen: `${seen}: ${missing} too few`, mend }];
}

/** `Cryptographic operations (…) request rate`: docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html */
const signatureQuotas = { ECC: 'L-DC14942D', RSA: 'L-2AC98190' } as const;

/** Front doors that let more through than KMS signs would have the surplus throttled by KMS, for all keys of the account. */
export async function checkSignatures({ view, region, clusters }: Site): Promise<Check[]> {
  const families = (['ECC', 'RSA'] as const).filter((family) => clusters.some((planned) => uses(planned, family)));
  return Promise.all(
    families.map(async (family) => {
      const rate = clusters
        .filter((planned) => uses(planned, family))
        .reduce((sum, { deployment: { access, limits } }) => sum + doors(access) * (limits.throttle?.rate ?? 0), 0);
      const row = {
        id: 'kms',
        check: `KMS signs ${rate} times a second with ${family} keys, as often as endpoints let through`,
      } as const;
      const code = signatureQuotas[family];
      const quota = await ask(view.quota('kms', code), 'servicequotas:GetServiceQuota');
      if (!quota.ok) return { ...row, ...quota.problem };
      const { name, value } = quota.value;
      const seen = `${name}: ${value}`;
      // Should AWS ever give this code to another quota.
      if (!name.includes(`(${family})`)) return { ...row, result: 'unknown', seen: `quota ${code} is “${name}”` };
      if (value >= rate) return { ...row, result: 'pass', seen };
      const mend = `aws service-quotas request-service-quota-increase --service-code kms --quota-code ${code} --desired-value ${rate} --region ${region}, or less in limits.throttle.rate`;
      return { ...row, result: 'fail', seen, mend };
    }),
  );
}

function uses({ cluster }: PlannedCluster, family: 'ECC' | 'RSA'): boolean {
  return [...cluster.cas.values()].some(({ keySpec }) => keySpec.startsWith('RSA') === (family === 'RSA'));
}

function doors(access: PlannedCluster['deployment']['access']): number {
  return Object.keys(access).length;
}
