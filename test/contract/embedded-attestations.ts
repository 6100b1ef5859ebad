/** The embedded store, as it is or with a mistake in it, ready for its cases. */
import { DatabaseSync } from 'node:sqlite';
import type { openEmbeddedAttestations } from '../../adapters/embedded/attestations.ts';
import type { StoreUnderTest } from './attestation-scene.ts';

export function embeddedUnderTest(open: typeof openEmbeddedAttestations, newFile: () => string): StoreUnderTest {
  const file = newFile();
  const opened = [open(file), open(newFile())] as const;
  const more: ReturnType<typeof open>[] = [];
  return {
    store: opened[0].store,
    register: opened[0].register,
    other: opened[1].store,
    async reopen() {
      const again = open(file);
      more.push(again);
      return again;
    },
    async giveName(nodeName, identity) {
      const raw = new DatabaseSync(file);
      raw.prepare('UPDATE node SET identity = ? WHERE node_name = ?').run(identity, nodeName);
      raw.close();
    },
    async putEntry(fields) {
      const raw = new DatabaseSync(file);
      raw.prepare('INSERT INTO machine (name, entry) VALUES (?, ?)').run(fields.name, JSON.stringify(fields));
      raw.close();
    },
    close: async () => [...opened, ...more].forEach((each) => each.close()),
  };
}
