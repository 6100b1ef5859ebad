/**
 * Evidence of a VM of Google Compute Engine (docs/attestation/gce.md): an identity token, which the metadata server signs for the
 * audience that this program names. The audience is the binding digest, so the token is worth nothing for another request.
 */
import type { GoogleMetadata } from '../../adapters/google/metadata.ts';
import { audienceFor } from '../../core/attestation/gce/evidence.ts';
import { internalNames, providerIdOf } from '../../core/attestation/google/vm.ts';
import { evidenceVersions } from '../settings/settings.ts';
import type { NodeProviderPort } from './provider.ts';

/** The approver accepts a token for five minutes, and its clock may be ahead. */
const staleAfterMilliseconds = 4 * 60_000;

const identityToken = 'instance/service-accounts/default/identity';

export function gceProvider(metadata: GoogleMetadata): NodeProviderPort {
  async function required(path: string): Promise<string> {
    const text = (await metadata.read(path))?.trim();
    if (text === undefined || text === '') throw new Error(`the metadata server has no ${path}`);
    return text;
  }

  return {
    versions: evidenceVersions.gce,
    renews: true,

    async describe() {
      const [project, longZone, name, address, hostname] = await Promise.all([
        required('project/project-id'),
        required('instance/zone'),
        required('instance/name'),
        metadata.read('instance/network-interfaces/0/ip'),
        metadata.read('instance/hostname'),
      ]);
      // projects/<project number>/zones/<zone>
      const zone = longZone.slice(longZone.lastIndexOf('/') + 1);
      // A host name that its owner chose is none that Google vouches for.
      const own = internalNames(project, zone, name).filter((known) => known === hostname);
      return {
        providerId: providerIdOf(project, zone, name),
        names: [...(address === undefined || address === '' ? [] : [address]), ...own],
      };
    },

    async makeEvidence({ binding, nonce, now }) {
      const audience = encodeURIComponent(audienceFor(binding(nonce)));
      const token = await metadata.read(`${identityToken}?audience=${audience}&format=full`);
      if (token === undefined)
        throw new Error(
          'this VM has no service account, and without one Google gives it no identity token: gcloud compute instances set-service-account',
        );
      return { data: JSON.stringify({ v: 1, token: token.trim(), nonce }), staleAt: now + staleAfterMilliseconds };
    },
  };
}
