/**
 * The sign handler's own reading of paths, kept as narrow: one spelling each, nothing escaped, nothing decoded, so that
 * the cluster judged here is the cluster asked for there.
 */
const clusterPath = /^\/v1\/clusters\/([a-z0-9-]{1,63})(?:\/[a-z0-9-]{1,63}){1,2}$/;

/** The cluster a call is about. */
export function clusterOf(rawPath: unknown): string | undefined {
  return typeof rawPath === 'string' ? clusterPath.exec(rawPath)?.[1] : undefined;
}
