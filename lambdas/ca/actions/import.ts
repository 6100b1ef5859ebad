/** Puts the certificate that another CA made, or that existed before, in force. The key must be in KMS; no private key comes here. */
import { importAuthority } from '../../../core/ca/import/import-authority.ts';
import type { ImportedCertificates } from '../../../core/ca/import/files.ts';
import type { CaAction } from './action.ts';
import { caAnswer, logOfCas, unknownCa } from './cas.ts';
import type { CaAnswer, OperatorAnswer } from './cas.ts';
import { notImported } from './csr.ts';

interface ImportRequest {
  readonly ca: string;
  readonly files: ImportedCertificates;
}

export interface ImportAnswer extends OperatorAnswer {
  readonly notes: readonly string[];
}

export const importCertificate: CaAction<ImportRequest, ImportAnswer> = {
  /** Certificates as base64 of their DER. */
  decode({ ca, certificate, chain, root, ...others }) {
    const own = bytesOf(certificate);
    const above = Array.isArray(chain) ? chain.map(bytesOf) : [undefined];
    const top = bytesOf(root);
    if (typeof ca !== 'string' || own === undefined || Object.keys(others).length > 0) return undefined;
    const known = above.filter((der) => der !== undefined);
    if (known.length < above.length || (root !== undefined && top === undefined)) return undefined;
    return { ca, files: { certificate: own, chain: known, ...(top === undefined ? {} : { root: top }) } };
  },
  async run({ ca: name, files }, ports) {
    const { cluster, store } = ports;
    const ca = ports.cas.get(name);
    const refused = (answer: Extract<CaAnswer, { ok: false }>): ImportAnswer => ({ cluster, cas: [answer], notes: [] });
    if (ca === undefined) return refused(unknownCa(name, ports));
    if (ca.kind !== 'imported') return refused({ name, ...notImported(name) });
    const imported = await importAuthority(ca, files, { key: ports.key(name), store, now: ports.origin().now });
    if (!imported.ok) return refused({ ok: false, name, ...imported.problem });
    const { authority, created, notes } = imported.value;
    return { cluster, cas: [caAnswer(name, { ok: true, value: authority, created })], notes };
  },
  // A refused import changes nothing, and its operator reads the reason. So it is no trouble of the cluster.
  logged: (answer, ports) => ({ ...logOfCas(answer, ports), failed: false }),
};

function bytesOf(value: unknown): Uint8Array | undefined {
  if (typeof value !== 'string') return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value && value !== '' ? new Uint8Array(bytes) : undefined;
}
