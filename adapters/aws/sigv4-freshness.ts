/** Temporary credentials of a role. */
export interface RoleCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** With less time left than this, new credentials are loaded while callers still get the old ones. */
const refreshMilliseconds = 5 * 60_000;
/** With less time left than this, callers wait for new credentials, since AWS's clock may be ahead. */
const waitMilliseconds = 60_000;
/** The pause after a failed attempt, while the old credentials are valid. */
const retryMilliseconds = 10_000;

/**
 * Caches the credentials that `load` returns and replaces them before they expire, with one call at a time. Rejects with
 * the error of `load` only if no valid credentials are left; the next caller tries again.
 */
export function keepFresh(load: () => Promise<RoleCredentials>, now: () => number): () => Promise<RoleCredentials> {
  let cached: { readonly credentials: RoleCredentials; readonly until: number } | undefined;
  let loading: Promise<RoleCredentials> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;

  function refresh(): Promise<RoleCredentials> {
    loading ??= load()
      .then((credentials) => {
        cached = { credentials, until: credentials.expiration?.getTime() ?? now() + refreshMilliseconds };
        return credentials;
      })
      .catch((error: unknown) => {
        failedAt = now();
        throw error;
      })
      .finally(() => {
        loading = undefined;
      });
    return loading;
  }

  return async () => {
    const left = cached === undefined ? 0 : cached.until - now();
    if (cached === undefined || left <= 0) return refresh();
    const { credentials } = cached;
    if (left > refreshMilliseconds) return credentials;
    const mayRetry = now() - failedAt >= retryMilliseconds;
    const fresh = mayRetry || loading !== undefined ? refresh().catch(() => credentials) : credentials;
    return left > waitMilliseconds ? credentials : fresh;
  };
}
