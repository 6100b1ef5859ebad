/**
 * The state behind `/readyz`. Ready means that no known problem of this replica keeps a request from being answered. A
 * busy or unreachable endpoint does not count, since restarting the relay would not help.
 */
export interface Health {
  role(role: 'starting' | 'standby' | 'working' | 'draining'): void;
  synced(signerName: string): void;
  /** The API server or the endpoint accepted such a call, or answered 401 or 403. */
  authorized(call: string): void;
  unauthorized(call: string): void;
  /** For the operator; empty if ready. */
  problems(): readonly string[];
}

/**
 * A forbidden call is repeated within a minute. An API server that has just started forbids calls until it has read all
 * roles, and the same call may not be needed again for days, so the refusal is forgotten after this time.
 */
const rememberedMilliseconds = 75_000;

export function createHealth(signerNames: readonly string[], monotonic: () => number): Health {
  let role = 'starting';
  let unsynced = new Set(signerNames);
  /** By call: when it was refused last. */
  const unauthorized = new Map<string, number>();
  return {
    role(now) {
      if (now === 'working') unsynced = new Set(signerNames);
      role = now;
    },
    synced: (signerName) => void unsynced.delete(signerName),
    authorized: (call) => void unauthorized.delete(call),
    unauthorized: (call) => void unauthorized.set(call, monotonic()),
    problems() {
      for (const [call, at] of unauthorized) if (monotonic() - at > rememberedMilliseconds) unauthorized.delete(call);
      const problems = [...unauthorized.keys()].map((call) => `not authorized: ${call}`);
      if (role === 'starting' || role === 'draining') problems.push(role);
      if (role === 'working') problems.push(...[...unsynced].map((signerName) => `not yet listed: ${signerName}`));
      return problems;
    },
  };
}
