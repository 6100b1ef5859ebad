/** Signs the request for the certificate of a CA that is imported. Each call signs anew: a request is not kept, and proves only the key. */
import { makeCaRequest } from '../../../core/ca/make-ca-request.ts';
import type { CaFault } from '../../../core/ca/authority.ts';
import { toPem } from '../../../core/encoding/pem.ts';
import type { CaAction } from './action.ts';
import { unknownCa } from './cas.ts';

export interface RequestAnswer {
  readonly cluster: string;
  readonly name: string;
  readonly request:
    | { readonly ok: true; readonly pem: string; readonly keyId: string }
    | { readonly ok: false; readonly why: CaFault | 'UnknownCa' | 'NotImported'; readonly message: string };
}

export const csr: CaAction<{ readonly ca: string }, RequestAnswer> = {
  decode({ ca, ...others }) {
    return typeof ca === 'string' && Object.keys(others).length === 0 ? { ca } : undefined;
  },
  async run({ ca: name }, ports) {
    const { cluster } = ports;
    const ca = ports.cas.get(name);
    if (ca === undefined) return { cluster, name, request: unknownCa(name, ports) };
    if (ca.kind !== 'imported') return { cluster, name, request: notImported(name) };
    const key = ports.key(name);
    const made = await makeCaRequest(ca, key);
    if (!made.ok) return { cluster, name, request: { ok: false, ...made.problem } };
    return {
      cluster,
      name,
      request: { ok: true, pem: toPem('CERTIFICATE REQUEST', made.value), keyId: key.keyId },
    };
  },
  logged: ({ name, request }) => ({ failed: false, cas: { [name]: request.ok ? 'requested' : request.why } }),
};

export function notImported(name: string): {
  readonly ok: false;
  readonly why: 'NotImported';
  readonly message: string;
} {
  return {
    ok: false,
    why: 'NotImported',
    message: `CA ${name} is not of kind: imported; Countersign makes its certificate itself`,
  };
}
