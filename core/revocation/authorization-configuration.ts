/**
 * The AuthorizationConfiguration with which kube-apiserver refuses revoked certificates (stable since Kubernetes 1.32). Its first
 * authorizers are webhooks that are called only for a revoked certificate, which `matchConditions` names by its fingerprint.
 *
 * With `failurePolicy: Deny` the API server refuses a matching request if the webhook does not answer. Without a relay a revoked
 * certificate is refused without a reason, and requests of all others are authorized as before.
 *
 * https://kubernetes.io/docs/reference/access-authn-authz/authorization/#configuring-the-api-server-using-an-authorization-config-file
 */
import type { JsonObject } from '../encoding/json-object.ts';
import { isObject, objectOf } from '../encoding/json-object.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

const credentialId = 'authentication.kubernetes.io/credential-id';
/** The names of our authorizers: this, then `-1`, `-2` … They are labels of metrics of the API server. */
const authorizerName = 'countersign-revoked';
/**
 * CEL refuses an expression of more than 100 000 characters (measured: 1 200 fingerprints compile, 1 300 do not). An expression of
 * this many fingerprints has 78 700.
 */
export const fingerprintsEach = 1_000;

export interface RevokedAuthorizers {
  /** SHA-256 of each revoked certificate, lower-case hex. */
  readonly fingerprints: readonly string[];
  /** On the machines of the API servers: how to reach the relay. */
  readonly kubeConfigFile: string;
}

/**
 * The configuration with our authorizers first, before those of `base`, in which earlier authorizers of ours are replaced. Without
 * `base`: before Node and RBAC, as kubeadm configures them.
 */
export function authorizationConfiguration(
  { fingerprints, kubeConfigFile }: RevokedAuthorizers,
  base: unknown,
): Result<JsonObject, string> {
  const others = base === undefined ? success(defaultAuthorizers) : authorizersIn(base);
  if (!others.ok) return others;
  const ordered = [...new Set(fingerprints)].toSorted();
  const count = Math.ceil(ordered.length / fingerprintsEach);
  const own = Array.from({ length: count }, (_, index) =>
    authorizer(
      count === 1 ? authorizerName : `${authorizerName}-${index + 1}`,
      ordered.slice(index * fingerprintsEach, (index + 1) * fingerprintsEach),
      kubeConfigFile,
    ),
  );
  return success({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    authorizers: [...own, ...others.value],
  });
}

const defaultAuthorizers: readonly JsonObject[] = [
  { type: 'Node', name: 'node' },
  { type: 'RBAC', name: 'rbac' },
];

function authorizersIn(base: unknown): Result<readonly JsonObject[], string> {
  const { kind, apiVersion, authorizers } = objectOf(base);
  if (kind !== 'AuthorizationConfiguration' || !Array.isArray(authorizers) || !authorizers.every(isObject))
    return failure('is not an AuthorizationConfiguration');
  // Fields of another version may have another meaning.
  if (apiVersion !== 'apiserver.config.k8s.io/v1')
    return failure('has another apiVersion than apiserver.config.k8s.io/v1');
  return success(authorizers.filter(({ name }) => !isOwn(name)));
}

function isOwn(name: unknown): boolean {
  return typeof name === 'string' && /^countersign-revoked(-\d+)?$/.test(name);
}

function authorizer(name: string, fingerprints: readonly string[], kubeConfigFile: string): JsonObject {
  const ids = fingerprints.map((fingerprint) => {
    // It becomes part of an expression.
    if (!/^[0-9a-f]{64}$/.test(fingerprint)) throw new RangeError('a fingerprint has 64 lower-case hex digits');
    return `'X509SHA256=${fingerprint}'`;
  });
  const extra = `request.extra['${credentialId}']`;
  return {
    type: 'Webhook',
    name,
    webhook: {
      timeout: '3s',
      subjectAccessReviewVersion: 'v1',
      matchConditionSubjectAccessReviewVersion: 'v1',
      failurePolicy: 'Deny',
      // The shortest that there is: a stale answer is one of before the revocation.
      authorizedTTL: '1s',
      unauthorizedTTL: '1s',
      connectionInfo: { type: 'KubeConfigFile', kubeConfigFile },
      matchConditions: [
        {
          expression: `has(request.extra) && '${credentialId}' in request.extra && ${extra}.exists(id, id in [${ids.join(', ')}])`,
        },
      ],
    },
  };
}

/** The fingerprints in an AuthorizationConfiguration that this program wrote. */
export function fingerprintsIn(configuration: unknown): ReadonlySet<string> {
  const { authorizers } = objectOf(configuration);
  const own = (Array.isArray(authorizers) ? authorizers.map(objectOf) : []).filter(({ name }) => isOwn(name));
  const found = own.flatMap((each) => [...JSON.stringify(each).matchAll(/X509SHA256=([0-9a-f]{64})/g)]);
  return new Set(found.map(([, fingerprint = '']) => fingerprint));
}
