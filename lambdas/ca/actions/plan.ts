/** What an operator's program needs before it imports a key: the CA as it is configured, and its key in KMS. */
import type { ImportedCa } from '../../../core/configuration/model/cluster.ts';
import type { CaAction } from './action.ts';
import { unknownCa } from './cas.ts';
import { notImported } from './csr.ts';

export interface PlanAnswer {
  readonly cluster: string;
  readonly name: string;
  readonly plan:
    | { readonly ok: true; readonly ca: ImportedCa; readonly keyId: string; readonly inForce: boolean }
    | { readonly ok: false; readonly why: 'UnknownCa' | 'NotImported'; readonly message: string };
}

export const plan: CaAction<{ readonly ca: string }, PlanAnswer> = {
  decode({ ca, ...others }) {
    return typeof ca === 'string' && Object.keys(others).length === 0 ? { ca } : undefined;
  },
  async run({ ca: name }, ports) {
    const { cluster } = ports;
    const ca = ports.cas.get(name);
    if (ca === undefined) return { cluster, name, plan: unknownCa(name, ports) };
    if (ca.kind !== 'imported') return { cluster, name, plan: notImported(name) };
    const inForce = (await ports.store.find(name)) !== undefined;
    return { cluster, name, plan: { ok: true, ca, keyId: ports.key(name).keyId, inForce } };
  },
  logged: ({ name, plan: answer }) => ({ failed: false, cas: { [name]: answer.ok ? 'planned' : answer.why } }),
};
