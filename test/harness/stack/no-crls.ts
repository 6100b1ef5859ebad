import type { CrlStore, RevocationStore } from '../../../core/ports/revocations.ts';

/** For handlers whose test asks for no CRL. */
export const noCrls: CrlStore = {
  findCrl: async () => undefined,
  findHead: async () => undefined,
  putCrl: async () => false,
};

const none: RevocationStore = {
  find: async () => undefined,
  add: async (revocation) => revocation,
  async *list() {},
};

/** For ca functions whose test revokes nothing, and asks for no record of a signature. */
export const noRevocations = { revocations: none, crls: noCrls, signatures: { put: async () => {} } } as const;
