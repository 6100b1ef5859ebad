/**
 * What the next request does differently after a refusal, by its reason. For every other reason an operator must act, and
 * another request would be refused too.
 */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { supportedVersions } from './decision.ts';

export type NextTry =
  /** The same key with new evidence. */
  | { readonly kind: 'freshEvidence' }
  | { readonly kind: 'otherVersion'; readonly version: string }
  | { readonly kind: 'newKey' }
  /** The key of the certificate that is not valid any more. */
  | { readonly kind: 'oldKey'; readonly keyPem: string };

export interface Tried {
  readonly reason: string;
  readonly object: JsonObject;
  /** The versions of evidence that this program can make, and the one that was refused. */
  readonly versions: readonly string[];
  readonly version: string;
  readonly keyPem: string;
  /** undefined once it was tried. */
  readonly oldKeyPem: string | undefined;
  /** Whether the node may use a new key: it logs in with its certificate, and its provider can prove the new key. */
  readonly mayChangeKey: boolean;
}

export function nextTry(tried: Tried): NextTry | undefined {
  switch (tried.reason) {
    // The evidence expired before the approver or the signer saw it, for example during an outage.
    case 'AttestationInvalid':
    case 'IntentExpired':
      return { kind: 'freshEvidence' };
    case 'AttestationVersion': {
      const version = otherVersion(tried);
      return version === undefined ? undefined : { kind: 'otherVersion', version };
    }
    case 'KeyReused':
      // With a bootstrap token a new key would count as another machine (docs/attestation.md, Trust on first use).
      return tried.mayChangeKey ? { kind: 'newKey' } : undefined;
    case 'TofuReuse': {
      // The certificate expired during a renewal: the machine is registered with one of the two keys, unknown which.
      const { oldKeyPem, keyPem } = tried;
      return oldKeyPem === undefined || oldKeyPem === keyPem ? undefined : { kind: 'oldKey', keyPem: oldKeyPem };
    }
    default:
      return undefined;
  }
}

/**
 * The newest version in the approver's list of supported ones. A refusal by the signer (condition Failed) has no such list:
 * then the next older version.
 */
function otherVersion({ object, versions, version }: Tried): string | undefined {
  const supported = supportedVersions(object);
  if (supported.length > 0) return versions.find((known) => known !== version && supported.includes(known));
  return versions[versions.indexOf(version) + 1];
}
