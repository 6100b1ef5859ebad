/** Which signers make users of the API server, and what must be limited about those. */
import type { Report } from '../model/report.ts';
import type { Profile } from '../../policy/profile.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { unlimitedLists } from './subject.ts';

/**
 * A signer of an operator's own on a CA that the API server trusts for clients makes users, whatever its author had in
 * mind; reserved names are for the signer whose purpose that is. Where the relay approves, the names are the only limit.
 */
export function checkLogins(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  report: Report,
): void {
  const clientCas = new Set(
    [...profiles.values()].filter(({ kind }) => kind.startsWith('kube-apiserver-client')).map(({ ca }) => ca),
  );
  for (const profile of profiles.values()) {
    const { signerName, ca, kind, allowReserved } = profile;
    const onClientCa = clientCas.has(ca) && isForClients(profile);
    const at = ['profiles', signerName];
    if (onClientCa && kind !== 'kube-apiserver-client' && allowReserved.length > 0)
      report(
        'error',
        [...at, 'subject', 'allowReserved'],
        `${quoted(ca)} also signs client certificates for the API server, where these names would be logins: that is for kubernetes.io/kube-apiserver-client; or give this signer another CA`,
      );
    else if (onClientCa && kind === 'custom')
      report(
        'warning',
        [...at, 'ca'],
        `${quoted(ca)} also signs client certificates for the API server: certificates of this profile can log in there`,
      );
    if (approval.get(signerName) !== 'approve') continue;
    const unlimited = onClientCa ? unlimitedLists(profile) : [];
    if (kind === 'legacy-unknown')
      report(
        'error',
        ['approval', signerName],
        'would approve any subjectAltName with any usage, names of the API server and of services too: leave this signer to people, or use a signer of your own',
      );
    else if (unlimited.length > 0)
      report(
        'error',
        ['approval', signerName],
        `would approve any name that is not reserved: limit ${unlimited.map((list) => `subject.${list}`).join(' and ')}`,
      );
  }
}

/** The signers that leave both name and purpose, or the purpose of a client, to the requester. */
function isForClients({ kind, custom }: Profile): boolean {
  return (
    kind === 'kube-apiserver-client' ||
    kind === 'legacy-unknown' ||
    custom?.usages.allowed.some((usage) => usage === 'client auth' || usage === 'any') === true
  );
}
