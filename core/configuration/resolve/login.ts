/** Checks the signers whose certificates are logins at the API server: which names they may issue. */
import type { Place } from '../model/place.ts';
import type { Profile } from '../../policy/profile.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { unlimitedLists } from './subject.ts';

/**
 * A certificate of an operator's own signer is a login if the API server trusts the signer's CA for clients. Then only
 * `kubernetes.io/kube-apiserver-client` may issue reserved names. If the relay approves, only the permitted names limit logins.
 * `at`: the cluster.
 */
export function checkLogins(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  at: Place,
): void {
  const clientCas = new Set(
    [...profiles.values()].filter(({ kind }) => kind.startsWith('kube-apiserver-client')).map(({ ca }) => ca),
  );
  for (const profile of profiles.values()) {
    const { signerName, ca, kind, allowReserved } = profile;
    const onClientCa = clientCas.has(ca) && isForClients(profile);
    if (onClientCa && kind !== 'kube-apiserver-client' && allowReserved.length > 0)
      at('profiles', signerName, 'subject', 'allowReserved').error(
        `${quoted(ca)} also signs client certificates for the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
      );
    else if (onClientCa && kind === 'custom')
      at('profiles', signerName, 'ca').warning(
        `${quoted(ca)} also signs client certificates for the API server: certificates of this profile can log in there`,
      );
    if (approval.get(signerName) !== 'approve') continue;
    const unlimited = onClientCa ? unlimitedLists(profile) : [];
    if (kind === 'legacy-unknown')
      at('approval', signerName).error(
        'would approve any subjectAltName with any usage, names of the API server and of services too: leave its approval to a person, or use a signer of your own',
      );
    else if (unlimited.length > 0)
      at('approval', signerName).error(
        `would approve any name that is not reserved: limit ${unlimited.map((list) => `subject.${list}`).join(' and ')}`,
      );
  }
}

/** The signers that let the requester choose both name and purpose, and custom ones that permit client certificates. */
function isForClients({ kind, custom }: Profile): boolean {
  return (
    kind === 'kube-apiserver-client' ||
    kind === 'legacy-unknown' ||
    custom?.usages.allowed.some((usage) => usage === 'client auth' || usage === 'any') === true
  );
}
