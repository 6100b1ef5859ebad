/**
 * Resolves how a cluster runs on AWS. No key of this part changes what is signed, so the sign function's bundle does not contain them.
 * Only the authorizer gets its part, `JwtAccess`.
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { CaKeyPlace, DeploymentConfiguration, JwtAccess } from '../model/deployment.ts';
import type { Place } from '../fields/place.ts';
import type { ClusterConfiguration } from '../model/cluster.ts';
import { resolveDomains } from './domains.ts';
import { functionUrlDoubt } from './function-url-regions.ts';
import { throttle as throttleShape } from '../schema/deployment.ts';
import type { CaInput, ClusterInput } from '../schema/cluster.ts';
import type { DeploymentInput, JwtInput } from '../schema/deployment.ts';

/** `at`: the cluster. */
export function resolveDeployment(
  input: DeploymentInput & Pick<ClusterInput, 'cas'>,
  at: Place,
): DeploymentConfiguration {
  const { frontDoor, alarms, dashboard, keys, logs, aws } = input;
  const { iam, jwt } = input.access;
  const { throttle, ...limits } = input.limits;
  if (frontDoor === 'functionUrl') {
    // A function URL has the auth types AWS_IAM and NONE, and NONE admits every caller.
    if (jwt !== undefined) at('access', 'jwt').error('a function URL cannot check tokens; use frontDoor: httpApi');
    if (throttle !== undefined)
      at('limits', 'throttle').error('a function URL cannot throttle; set reservedConcurrency');
    const doubt = functionUrlDoubt(aws.region);
    if (doubt !== undefined) at('frontDoor').warning(`${doubt}. If it still is one, use frontDoor: httpApi`);
  }
  if (iam?.principals.length === 0) at('access', 'iam', 'principals').error('is required and must not be empty');
  const { administrators, deleters } = keys;
  if (administrators?.length === 0)
    at('keys', 'administrators').error('must not be empty, or the key policy could never be changed');
  deleters.forEach((deleter, index) => {
    if (administrators?.includes(deleter) === true)
      at('keys', 'deleters', index).warning('is an administrator too; deletion is safer with a separate principal');
  });
  const domains = resolveDomains(input, at);
  return {
    ...aws,
    frontDoor,
    ...(Object.keys(domains).length === 0 ? {} : { domains }),
    access: {
      ...(iam === undefined ? {} : { iam: { principals: iam.principals } }),
      ...(jwt === undefined ? {} : { jwt: resolveJwt(jwt, at('access', 'jwt')) }),
    },
    limits: { ...limits, ...(frontDoor === 'functionUrl' ? {} : { throttle: throttle ?? throttleShape.parse({}) }) },
    alarms,
    dashboard,
    keys,
    logRetentionDays: logs.retentionDays,
    caKeys: new Map(
      Object.entries(input.cas).map(([name, ca]) => [name, resolveKeyPlace(ca, aws.region, at('cas', name))]),
    ),
  };
}

/** `at`: the CA. */
function resolveKeyPlace({ multiRegion, replicaOf }: CaInput, region: string | undefined, at: Place): CaKeyPlace {
  if (replicaOf === undefined) return multiRegion ? 'multiRegion' : 'oneRegion';
  if (multiRegion) at('multiRegion').error('is said of the key that is replicated; a replica is one anyway');
  if (replicaOf.split(':')[3] === region)
    at('replicaOf').error('is in the Region of this cluster: a Region has a multi-Region key once');
  return { replicaOf };
}

function resolveJwt({ issuer = '', audience = '', subjects, jwks }: JwtInput, at: Place): JwtAccess {
  if (issuer === '') at('issuer').error('is required');
  if (audience === '') at('audience').error('is required');
  // kube-apiserver's own audience is its issuer by default, and every pod gets a token for it.
  else if (audience === issuer)
    at('audience').error('must not be the issuer: the tokens every pod is given are for that audience');
  if (subjects.length === 0) at('subjects').error('is required and must not be empty');
  if (jwks === undefined) return { issuer, audience, subjects };
  const keySet = readJwks(jwks);
  if (keySet.ok) return { issuer, audience, subjects, jwks: keySet.value };
  at('jwks').error(keySet.problem);
  return { issuer, audience, subjects };
}

/** Decodes a JSON Web Key Set that holds only public keys. */
function readJwks(json: string): Result<NonNullable<JwtAccess['jwks']>, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return failure('must be JSON; quote it, or use a block (jwks: |)');
  }
  const keys: unknown = (parsed as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0) return failure('must be a JSON Web Key Set with at least one key');
  for (const key of keys as readonly unknown[]) {
    const { kty, d, k } = (key ?? {}) as Readonly<Record<string, unknown>>;
    // Reviewers and relays can read the file, so it must hold no key that can sign tokens.
    if (d !== undefined || k !== undefined)
      return failure('holds a private or shared key; only public keys belong here');
    if (kty !== 'RSA' && kty !== 'EC')
      return failure('holds a key that is neither RSA nor EC; tokens are RS256 or ES256');
  }
  return success({ keys: keys as readonly Readonly<Record<string, unknown>>[] });
}

/** The prefix keeps a deployment from updating a stack of another owner: CDK updates any stack that has the name. */
export function stackNames(cluster: string): { readonly service: string; readonly state: string } {
  return { service: `countersign-${cluster}`, state: `countersign-${cluster}-state` };
}

/** The name is fixed, so that the command line can call the function without asking CloudFormation. */
export function functionName(cluster: string, service: 'sign' | 'attest' | 'ca' | 'kubeadm' | 'authorizer'): string {
  return `countersign-${cluster}-${service}`;
}

/** The name is fixed, so that another account can permit its relays to assume the role before the role exists. */
export function callerRoleName(cluster: string): string {
  return `countersign-${cluster}-caller`;
}

/** AWS permits 64 characters in names of roles and functions, and our names contain the name of the cluster. */
const maxNameLength = 40;

/** Checks that matter only for a deployment, not for the dev server and the command line. `at`: the map of clusters. */
export function checkDeployments(
  clusters: ReadonlyMap<string, ClusterConfiguration>,
  deployments: ReadonlyMap<string, DeploymentConfiguration>,
  at: Place,
): void {
  checkKmsQuota(clusters, deployments, at);
  for (const [name, { access, keys }] of deployments) {
    const here = at(name);
    if (name.length > maxNameLength)
      here.error(`must be at most ${maxNameLength} characters: it becomes part of role names`);
    // Otherwise the state stack of that cluster and the service stack of this one would have the same name.
    const owner = [...deployments.keys()].find((other) => stackNames(other).state === stackNames(name).service);
    if (owner !== undefined) here.error(`gives its stack the name of the state stack of cluster ${owner}`);
    const awaiting = [...(clusters.get(name)?.cas.values() ?? [])].some(
      (ca) => ca.kind === 'imported' && ca.keyMaterial === 'imported',
    );
    if (awaiting && keys.importers.length === 0)
      here('keys', 'importers').error(
        'is required: it names who may import the key of a CA with keyMaterial: imported',
      );
    if (access.iam === undefined && access.jwt === undefined)
      here('access').error('is required to deploy: name callers under access.iam or access.jwt');
  }
}

/**
 * Default quota of KMS: signatures per second with all RSA keys, and as many with all ECC keys, in one account and region.
 * https://docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html
 */
const kmsSignaturesPerSecond = 1000;

/** All clusters of an account and region share this quota, so their front doors together should admit no more calls than it. */
function checkKmsQuota(
  clusters: ReadonlyMap<string, ClusterConfiguration>,
  deployments: ReadonlyMap<string, DeploymentConfiguration>,
  at: Place,
): void {
  const sums = new Map<string, number>();
  for (const [name, { account = '', region = '', access, limits }] of deployments) {
    const frontDoors = Object.keys(access).length;
    const families = new Set(
      [...(clusters.get(name)?.cas.values() ?? [])].map(({ keySpec }) => (keySpec.startsWith('RSA') ? 'RSA' : 'ECC')),
    );
    for (const family of families) {
      const pool = `${account} ${region} ${family}`;
      const before = sums.get(pool) ?? 0;
      const after = before + frontDoors * (limits.throttle?.rate ?? 0);
      sums.set(pool, after);
      if (before <= kmsSignaturesPerSecond && after > kmsSignaturesPerSecond)
        at(name, 'limits', 'throttle', 'rate').warning(
          `up to here the endpoints of one account and region let through ${after} calls a second; KMS signs ${kmsSignaturesPerSecond} unless AWS raised the quota`,
        );
    }
  }
}
