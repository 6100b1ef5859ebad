/**
 * After a no: is there anything this node can do differently at once? Only what the reason itself calls for; everything
 * else is an answer for people, and asking again would only be more requests.
 */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { supportedVersions } from './decision.ts';

export type NextTry =
  /** The same key, with evidence of now. */
  | { readonly kind: 'freshEvidence' }
  | { readonly kind: 'otherVersion'; readonly version: string }
  | { readonly kind: 'newKey' }
  /** The key of the certificate that is no good any more. */
  | { readonly kind: 'oldKey'; readonly keyPem: string };

export interface Tried {
  readonly reason: string;
  readonly object: JsonObject;
  /** Versions of evidence this program makes, and the one that was used. */
  readonly versions: readonly string[];
  readonly version: string;
  readonly keyPem: string;
  /** Present while it was not yet tried. */
  readonly oldKeyPem: string | undefined;
  /** Whether the node may change its key: it logs in as itself, and its provider can prove the new one. */
  readonly mayChangeKey: boolean;
}

export function nextTry(tried: Tried): NextTry | undefined {
  switch (tried.reason) {
    // Too old when it was looked at: the signing side was away.
    case 'AttestationInvalid':
    case 'IntentExpired':
      return { kind: 'freshEvidence' };
    case 'AttestationVersion': {
      const version = otherVersion(tried);
      return version === undefined ? undefined : { kind: 'otherVersion', version };
    }
    case 'KeyReused':
      // With a bootstrap token another key would be another machine's (docs/attestation.md, Trust on first use).
      return tried.mayChangeKey ? { kind: 'newKey' } : undefined;
    case 'TofuReuse': {
      // A renewal that ended too late: which of the two keys the machine is registered with, only trying tells.
      const { oldKeyPem, keyPem } = tried;
      return oldKeyPem === undefined || oldKeyPem === keyPem ? undefined : { kind: 'oldKey', keyPem: oldKeyPem };
    }
    default:
      return undefined;
  }
}

/**
 * The newest that the signing side says it takes. It says so where it denies. Where somebody else approves, it can only
 * fail the request, which leaves no room for the list: then the next older version is tried.
 */
function otherVersion({ object, versions, version }: Tried): string | undefined {
  const taken = supportedVersions(object);
  if (taken.length > 0) return versions.find((known) => known !== version && taken.includes(known));
  return versions[versions.indexOf(version) + 1];
}
