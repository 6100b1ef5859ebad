/**
 * A provider that proves nothing (Cluster API's proposal), for machines without a platform that can attest them: the first
 * requester of a node name becomes that node. Such machines get no renewals and no serving certificates, because a second
 * request under the same name proves no more than the first.
 */
import { violation } from '../../outcome/outcome.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AttestationProvider, Evidence, Examined } from './provider.ts';
import { readEvidence } from '../../encoding/strict-json.ts';

export const insecureProvider: AttestationProvider = {
  name: 'insecure',
  versions: ['insecure/v1'],
  secure: false,
  examine,
  // No platform can confirm that such a machine is gone: its name stays taken until an operator resets it.
  describe: () => Promise.resolve({ kind: 'stopped' }),
};

function examine({ data, nodeName, request }: Evidence): Result<Examined, Violations> {
  const read = readEvidence(data, { required: ['v'] });
  if (!read.ok) return failure([violation('AttestationInvalid', `the attestation data ${read.problem}`)]);
  if (read.value.v !== 1)
    return failure([violation('AttestationInvalid', 'the attestation data is not of insecure/v1')]);
  const identity = `insecure#${nodeName}`;
  const machine = {
    identity,
    // The machine's own claim, which no platform confirms.
    providerId: request.providerId ?? '',
    nodeNames: [nodeName],
    // No platform confirms an address or a DNS name.
    addresses: [],
    dnsNames: [],
  };
  return success({ identity, once: [], machines: [], verify: () => Promise.resolve(success(machine)) });
}
