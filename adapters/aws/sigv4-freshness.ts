/** Of a role, for a while. */
export interface RoleCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** With less left than this, new ones are asked for while the old still serve. */
const refreshMilliseconds = 5 * 60_000;
/** With less left than this, callers wait: the far side's clock may be ahead. */
const waitMilliseconds = 60_000;
/** Between two tries while the old ones serve. */
const retryMilliseconds = 10_000;

/**
 * Keeps what `load` gave and replaces it before it expires, with one call at a time. Rejects, as `load` did, only when
 * there is nothing left to work with; the next caller tries again.
 */
export function keepFresh(load: () => Promise<RoleCredentials>, now: () => number): () => Promise<RoleCredentials> {
  let kept: { readonly credentials: RoleCredentials; readonly until: number } | undefined;
  let loading: Promise<RoleCredentials> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;

  function refresh(): Promise<RoleCredentials> {
    loading ??= load()
      .then((credentials) => {
        kept = { credentials, until: credentials.expiration?.getTime() ?? now() + refreshMilliseconds };
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
    const left = kept === undefined ? 0 : kept.until - now();
    if (kept === undefined || left <= 0) return refresh();
    const { credentials } = kept;
    if (left > refreshMilliseconds) return credentials;
    const mayTry = now() - failedAt >= retryMilliseconds;
    const fresh = mayTry || loading !== undefined ? refresh().catch(() => credentials) : credentials;
    return left > waitMilliseconds ? credentials : fresh;
  };
}
