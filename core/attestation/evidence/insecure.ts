/**
 * A provider that proves nothing (Cluster API's proposal): whoever comes first under a node name is that node.
 * For machines that no platform speaks for. Without renewal and serving certificates: a second request under the same
 * name proves no more than the first.
 */
import { violation } from '../../outcome/outcome.ts';
import type { AttestationProvider, Evidence, Examined, Refused } from './provider.ts';
import { readEvidence } from '../../encoding/strict-json.ts';

export const insecureProvider: AttestationProvider = {
  name: 'insecure',
  versions: ['insecure/v1'],
  secure: false,
  examine,
  // Nobody can tell that such a machine is gone: its name stays taken until an operator resets it.
  describe: () => Promise.resolve({ kind: 'stopped' }),
};

function examine({ data, nodeName, request }: Evidence): Examined | Refused {
  const read = readEvidence(data, { required: ['v'] });
  if ('problem' in read)
    return { violations: [violation('AttestationInvalid', `the attestation data ${read.problem}`)] };
  if (read.fields.v !== 1)
    return { violations: [violation('AttestationInvalid', 'the attestation data is not of insecure/v1')] };
  const identity = `insecure#${nodeName}`;
  const machine = {
    identity,
    // What it says of itself is all that anybody knows of it.
    providerId: request.providerId ?? '',
    nodeNames: [nodeName],
    // No address and no name is known to be its own.
    addresses: [],
    dnsNames: [],
  };
  return { identity, once: [], machines: [], verify: () => Promise.resolve(machine) };
}
