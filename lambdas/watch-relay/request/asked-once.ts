/**
 * The UIDs that need not be asked about again. The oldest are forgotten when there are too many: they are asked about
 * once more when they come by again, which costs a call and changes nothing.
 */
export interface AskedOnce {
  has(uid: string): boolean;
  add(uid: string): void;
  /** Decided, or deleted. */
  drop(uid: string): void;
}

export function createAskedOnce(capacity: number): AskedOnce {
  const asked = new Set<string>();
  return {
    has: (uid) => asked.has(uid),
    add(uid) {
      asked.add(uid);
      const [oldest] = asked;
      if (asked.size > capacity && oldest !== undefined) asked.delete(oldest);
    },
    drop: (uid) => void asked.delete(uid),
  };
}
