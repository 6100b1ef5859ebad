/**
 * What `/readyz` says. Ready means: if a request is approved now, nothing we know of keeps this replica, or the
 * leader for whom it stands by, from getting it answered. An endpoint that is merely busy or away does not count: a
 * relay that restarts for it would only come back to the same.
 */
export interface Health {
  /** `standby` needs no list of its own. */
  role(role: 'starting' | 'standby' | 'working' | 'draining'): void;
  synced(signerName: string): void;
  /** A call of this sort went through, or was answered 401 or 403. */
  authorized(call: string): void;
  unauthorized(call: string): void;
  /** Empty when ready; otherwise why not, for people. */
  problems(): readonly string[];
}

/**
 * What is forbidden is met again within a minute: nothing waits longer for its next try. An API server that starts
 * forbids for a moment what it has not read the roles for, and that very call may not be needed again for days.
 */
const rememberedMilliseconds = 75_000;

export function createHealth(signerNames: readonly string[], monotonic: () => number): Health {
  let role = 'starting';
  let unsynced = new Set(signerNames);
  /** Call → when it was refused last. */
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
