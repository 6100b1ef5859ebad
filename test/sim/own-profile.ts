/** A signer of the operator's own, with a limit of every kind. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { Profile } from '../../core/policy/profile.ts';
import { ranges } from '../harness/attestation/address-ranges.ts';

export const ownSigner = 'k8s.example.com/web';

/** Its profile in that cluster. */
export function ownProfile({ profiles }: ClusterConfiguration): Profile {
  const [base] = profiles.values();
  if (base === undefined) throw new Error('the cluster has no profile');
  return {
    ...base,
    signerName: ownSigner,
    kind: 'custom',
    keys: ['P-256'],
    requester: { users: ['web-*'], groups: [] },
    subject: { commonNames: ['web', 'web-*'], organizations: ['shop'] },
    custom: {
      usages: { allowed: ['digital signature', 'server auth'], required: ['server auth'] },
      sans: {
        dns: ['*.shop.example.com'],
        email: [],
        ip: ranges('10.96.0.0/12'),
        uri: ['spiffe://example.com/ns/shop/sa/*'],
        required: true,
      },
    },
  };
}
