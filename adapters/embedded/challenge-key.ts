/** The challenge key of attestation, in the file of the attestation store. */
import { createHmac, randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { ChallengeKey } from '../../core/ports/challenge-key.ts';
import type { Row, Transact } from './database.ts';

/** The first MAC creates the key: a cluster that challenges no machine has no key. */
export function embeddedChallengeKey(database: DatabaseSync, transact: Transact): ChallengeKey {
  const select = database.prepare('SELECT bytes FROM challenge_key');
  const insert = database.prepare('INSERT INTO challenge_key (id, bytes) VALUES (1, ?)');
  // In one transaction, so that of several processes one creates the key and the others read it.
  const create = () =>
    transact(() => {
      const found = select.get();
      if (found !== undefined) return found;
      const bytes = randomBytes(32);
      insert.run(bytes);
      return { bytes };
    });
  return {
    async mac(message) {
      const row: Row = select.get() ?? (await create());
      if (!(row['bytes'] instanceof Uint8Array)) throw new TypeError('the challenge key of the store is not bytes');
      return createHmac('sha256', row['bytes']).update(message).digest();
    },
  };
}
