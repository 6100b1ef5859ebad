/**
 * The state behind `/readyz`. Ready means that no known problem of this replica keeps a request from being answered. A
 * busy or unreachable endpoint does not count, since restarting the relay would not help.
 */
export interface Health {
  role(role: 'starting' | 'standby' | 'working' | 'draining'): void;
  synced(signerName: string): void;
  /** The API server or the endpoint authorized this kind of call. */
  authorized(call: string): void;
  /** It answered this kind of call with 401 or 403. */
  unauthorized(call: string): void;
  /** For the operator; empty if ready. */
  problems(): readonly string[];
}

/**
 * How long a refused call counts as a problem. The relay repeats a call that it still needs within a minute. It may not need
 * the call again for days, and an API server that has just started refuses calls until it has read all roles.
 */
const refusalMilliseconds = 75_000;

export function createHealth(signerNames: readonly string[], monotonic: () => number): Health {
  let role = 'starting';
  let unsynced = new Set(signerNames);
  /** The time of the last refusal, by kind of call. */
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
      for (const [call, at] of unauthorized) if (monotonic() - at > refusalMilliseconds) unauthorized.delete(call);
      const problems = [...unauthorized.keys()].map((call) => `not authorized: ${call}`);
      if (role === 'starting' || role === 'draining') problems.push(role);
      if (role === 'working') problems.push(...[...unsynced].map((signerName) => `not yet listed: ${signerName}`));
      return problems;
    },
  };
}
