/** Checks the signers whose certificates are logins at the API server: which names they may issue. */
import type { Place } from '../fields/place.ts';
import type { CaConfiguration, ClusterConfiguration } from '../model/cluster.ts';
import { generationsOf } from '../model/generations.ts';
import type { Profile } from '../../policy/profile.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { isNodeSigner, permitsClientCertificates } from '../../policy/signer-names.ts';
import { isAbove } from './ca.ts';
import { unlimitedLists } from './subject.ts';

/**
 * A certificate of an operator's own signer is a login if the API server trusts the signer's CA for clients. Then only
 * `kubernetes.io/kube-apiserver-client` may issue reserved names. If the relay approves, only the permitted names limit logins.
 * `at`: the cluster.
 */
export function checkLogins(
  { profiles, cas, approval }: Pick<ClusterConfiguration, 'profiles' | 'cas' | 'approval'>,
  at: Place,
): void {
  const clientCas = trustedForClients(profiles, cas);
  for (const profile of profiles.values()) {
    const { signerName, ca, kind, allowReserved } = profile;
    const onClientCa = clientCas.has(ca) && isForClients(profile);
    if (onClientCa && kind !== 'kube-apiserver-client' && allowReserved.length > 0)
      at('profiles', signerName, 'subject', 'allowReserved').error(
        `${quoted(ca)} is trusted for clients of the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
      );
    else if (onClientCa && kind === 'custom')
      at('profiles', signerName, 'ca').warning(
        `${quoted(ca)} is trusted for clients of the API server: certificates of this profile can log in there`,
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

/** During a rotation old and new CA, and every CA below one of these: the API server accepts a chain through it. */
function trustedForClients(
  profiles: ClusterConfiguration['profiles'],
  cas: ClusterConfiguration['cas'],
): ReadonlySet<string> {
  const clients = [...profiles.values()].filter(({ kind }) => kind.startsWith('kube-apiserver-client'));
  const anchors = new Set(clients.flatMap(({ ca }) => generationsOf(ca, cas)));
  const isBelow = (ca: CaConfiguration): boolean =>
    [...anchors].some((name) => {
      const anchor = cas.get(name);
      return anchor !== undefined && isAbove(anchor, ca, cas);
    });
  return new Set([...anchors, ...[...cas.values()].filter(isBelow).map(({ name }) => name)]);
}

/** The signers that let the requester choose a name for a client certificate. */
function isForClients(profile: Profile): boolean {
  return !isNodeSigner(profile) && permitsClientCertificates(profile);
}
