/** UIDs of requests that attest has answered. Above the capacity the oldest UID is dropped, which costs one more call. */
export interface AskedOnce {
  has(uid: string): boolean;
  add(uid: string): void;
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
