/**
 * How a cluster runs on AWS, from what was written to what holds. Nothing here decides what is signed, so none of it
 * is bundled with the sign function: only the authorizer gets its part, `JwtAccess`.
 */
import type { DeploymentConfiguration, JwtAccess } from '../model/deployment.ts';
import type { Report } from '../model/report.ts';
import type { ClusterConfiguration } from '../model/cluster.ts';
import type { DeploymentInput, JwtInput } from '../schema/deployment.ts';

export function resolveDeployment(input: DeploymentInput, report: Report): DeploymentConfiguration {
  const frontDoor = input.frontDoor ?? 'httpApi';
  const { iam, jwt } = input.access ?? {};
  const { throttle } = input.limits ?? {};
  if (frontDoor === 'functionUrl') {
    // A function URL knows AWS_IAM and NONE, and NONE is no door.
    if (jwt !== undefined)
      report('error', ['access', 'jwt'], 'a function URL cannot check tokens; use frontDoor: httpApi');
    if (throttle !== undefined)
      report('error', ['limits', 'throttle'], 'a function URL cannot throttle; set reservedConcurrency');
  }
  if (iam !== undefined && (iam.principals ?? []).length === 0)
    report('error', ['access', 'iam', 'principals'], 'is required and must not be empty');
  const { administrators, deleters = [] } = input.keys ?? {};
  if (administrators?.length === 0)
    report('error', ['keys', 'administrators'], 'must not be empty, or the key policy could never be changed');
  deleters.forEach((deleter, index) => {
    if (administrators?.includes(deleter) === true)
      report(
        'warning',
        ['keys', 'deleters', index],
        'is an administrator too; deletion is safer with a separate principal',
      );
  });
  return {
    ...(input.aws?.account === undefined ? {} : { account: input.aws.account }),
    ...(input.aws?.region === undefined ? {} : { region: input.aws.region }),
    frontDoor,
    access: {
      ...(iam === undefined ? {} : { iam: { principals: iam.principals ?? [] } }),
      ...(jwt === undefined ? {} : { jwt: resolveJwt(jwt, report) }),
    },
    limits: {
      reservedConcurrency: input.limits?.reservedConcurrency ?? 40,
      ...(frontDoor === 'functionUrl'
        ? {}
        : { throttle: { rate: throttle?.rate ?? 200, burst: throttle?.burst ?? 400 } }),
      inFlightPerRequester: input.limits?.inFlightPerRequester ?? 24,
    },
    alarms: {
      topics: input.alarms?.topics ?? [],
      caDaysLeft: input.alarms?.caDaysLeft ?? 90,
      refusals: input.alarms?.refusals ?? 20,
    },
    keys: { ...(administrators === undefined ? {} : { administrators }), deleters },
    logRetentionDays: input.logs?.retentionDays ?? 365,
  };
}

function resolveJwt({ issuer, audience, subjects, jwks }: JwtInput, report: Report): JwtAccess {
  const at = ['access', 'jwt'];
  if (issuer === undefined) report('error', [...at, 'issuer'], 'is required');
  if (audience === undefined) report('error', [...at, 'audience'], 'is required');
  // kube-apiserver's own audience is its issuer by default, and every pod gets a token for it.
  else if (audience === issuer)
    report('error', [...at, 'audience'], 'must not be the issuer: the tokens every pod is given are for that audience');
  if ((subjects ?? []).length === 0) report('error', [...at, 'subjects'], 'is required and must not be empty');
  const keySet = jwks === undefined ? undefined : readJwks(jwks);
  if (typeof keySet === 'string') report('error', [...at, 'jwks'], keySet);
  return {
    issuer: issuer ?? '',
    audience: audience ?? '',
    subjects: subjects ?? [],
    ...(typeof keySet === 'object' ? { jwks: keySet } : {}),
  };
}

/** The key set, or what is wrong with it. */
function readJwks(json: string): NonNullable<JwtAccess['jwks']> | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return 'must be JSON; quote it, or use a block (jwks: |)';
  }
  const keys: unknown = (parsed as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0) return 'must be a JSON Web Key Set with at least one key';
  for (const key of keys as readonly unknown[]) {
    const { kty, d, k } = (key ?? {}) as Readonly<Record<string, unknown>>;
    // The file is read by reviewers and relays: no place for what makes tokens.
    if (d !== undefined || k !== undefined) return 'holds a private or shared key; only public keys belong here';
    if (kty !== 'RSA' && kty !== 'EC') return 'holds a key that is neither RSA nor EC; tokens are RS256 or ES256';
  }
  return { keys: keys as readonly Readonly<Record<string, unknown>>[] };
}

/** Known before anything is deployed, so that the command line finds the function without asking CloudFormation. */
export function functionName(cluster: string, service: 'sign' | 'attest' | 'ca' | 'authorizer'): string {
  return `countersign-${cluster}-${service}`;
}

/** Likewise, so that other accounts can let their relays assume it before it exists. */
export function callerRoleName(cluster: string): string {
  return `countersign-${cluster}-caller`;
}

/** Roles and functions have names of up to 64 characters, and ours stand around the cluster's. */
const longestName = 40;

/** Checks that matter only for a deployment, not for the dev server and the command line. */
export function checkDeployments(
  clusters: ReadonlyMap<string, ClusterConfiguration>,
  deployments: ReadonlyMap<string, DeploymentConfiguration>,
  report: (cluster: string, ...problem: Parameters<Report>) => void,
): void {
  checkKmsQuota(clusters, deployments, report);
  for (const [name, { access }] of deployments) {
    if (!/^[a-z]/.test(name)) report(name, 'error', [], 'must begin with a letter: it names CloudFormation stacks');
    if (name.length > longestName)
      report(name, 'error', [], `must be at most ${longestName} characters: it becomes part of role names`);
    // The state stack of one would be the service stack of the other.
    if (name.endsWith('-state') && deployments.has(name.slice(0, -'-state'.length)))
      report(name, 'error', [], `is the name of the state stack of cluster ${name.slice(0, -'-state'.length)}`);
    if (access.iam === undefined && access.jwt === undefined)
      report(name, 'error', ['access'], 'is required to deploy: name callers under access.iam or access.jwt');
  }
}

/**
 * Signatures a second with all RSA keys, and with all ECC keys, of one account and region, unless AWS raised it.
 * https://docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html
 */
const kmsSignaturesPerSecond = 1000;

/** Clusters share nothing but this quota: what all front doors together let through should stay below it. */
function checkKmsQuota(
  clusters: ReadonlyMap<string, ClusterConfiguration>,
  deployments: ReadonlyMap<string, DeploymentConfiguration>,
  report: (cluster: string, ...problem: Parameters<Report>) => void,
): void {
  const sums = new Map<string, number>();
  for (const [name, { account = '', region = '', access, limits }] of deployments) {
    const ways = Object.keys(access).length;
    const families = new Set(
      [...(clusters.get(name)?.cas.values() ?? [])].map(({ keySpec }) => (keySpec.startsWith('RSA') ? 'RSA' : 'ECC')),
    );
    for (const family of families) {
      const pool = `${account} ${region} ${family}`;
      const before = sums.get(pool) ?? 0;
      const after = before + ways * (limits.throttle?.rate ?? 0);
      sums.set(pool, after);
      if (before <= kmsSignaturesPerSecond && after > kmsSignaturesPerSecond)
        report(
          name,
          'warning',
          ['limits', 'throttle', 'rate'],
          `up to here the front doors of one account and region let through ${after} calls a second; KMS signs ${kmsSignaturesPerSecond} unless AWS raised the quota`,
        );
    }
  }
}
