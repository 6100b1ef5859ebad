/**
 * Accepts the same paths as the sign handler: one spelling each, without escapes. So the cluster that is authorized here is
 * the cluster that handles the request.
 */
const clusterPath = /^\/v1\/clusters\/([a-z0-9-]{1,63})(?:\/[a-z0-9-]{1,63}){1,2}$/;

/** The cluster that a call addresses. */
export function clusterOf(rawPath: unknown): string | undefined {
  return typeof rawPath === 'string' ? clusterPath.exec(rawPath)?.[1] : undefined;
}
