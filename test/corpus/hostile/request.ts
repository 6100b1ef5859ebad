/** An ordinary request that the signer answers with a certificate, and the ways the corpus spoils it. */
import { makeRequest, pemBlock, type MadeRequest, type RequestSpec } from '../../harness/x509/requests.ts';
import { editAt, toBytes, toTree, type Path, type Tlv } from './tlv-tree.ts';
import { requestCase, type Ending, type HostileCase } from './case.ts';

export type Edit = (node: Tlv) => readonly Tlv[];

export const ordinary: RequestSpec = {
  subject: { CN: 'hostile', O: ['one', 'two'] },
  sans: { dns: ['a.example'], ip: ['10.0.0.1'] },
};

/** The request with one place edited: signed after the edit where the signature covers the place, so that it is valid. */
function edited(path: Path, edit: Edit, spec: RequestSpec = ordinary): MadeRequest {
  const [part, ...rest] = path;
  return part === 0
    ? makeRequest({ ...spec, info: (info) => toBytes(editAt(toTree(info), rest, edit)) })
    : makeRequest({ ...spec, tamper: (request) => toBytes(editAt(toTree(request), path, edit)) });
}

export function editCase(
  id: string,
  expected: Ending | readonly Ending[],
  path: Path,
  edit: Edit,
  spec?: RequestSpec,
): HostileCase {
  return requestCase(id, expected, () => edited(path, edit, spec).bytes);
}

export function specCase(id: string, expected: Ending | readonly Ending[], spec: () => RequestSpec): HostileCase {
  return requestCase(id, expected, () => makeRequest(spec()).bytes);
}

export function derCase(id: string, expected: Ending | readonly Ending[], der: () => Uint8Array): HostileCase {
  return requestCase(id, expected, () => pemBlock('CERTIFICATE REQUEST', der()));
}
