/** UIDs that attest has answered. Beyond the capacity the oldest is forgotten, which costs one more call and changes nothing. */
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
