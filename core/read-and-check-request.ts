/**
 * The first checks of a request, the same for sign, attest, the relay and `countersign csr explain`: is it for this endpoint,
 * can it be read in exactly one way, which signer is it for, and does the profile of that signer permit it?
 */
import { readVmEvidence } from './attestation/gce-vtpm/blocks.ts';
import type { RequestObject } from './kubernetes/certificate-signing-request.ts';
import type { IgnoredWhy, Violations } from './outcome/outcome.ts';
import { failure } from './outcome/result.ts';
import type { Result } from './outcome/result.ts';
import { checkProfile, defaultSignerName } from './policy/check-profile.ts';
import type { Profile } from './policy/profile.ts';
import { decodeRequest } from './x509/certificate-request.ts';
import type { CertificateRequest } from './x509/model.ts';

type Profiles = ReadonlyMap<string, Profile>;

export type RequestCheck =
  | { readonly kind: 'ignored'; readonly why: IgnoredWhy }
  | { readonly kind: 'unreadable'; readonly violations: Violations }
  | {
      readonly kind: 'readable';
      readonly request: CertificateRequest;
      readonly signerName: string;
      readonly profile: Profile;
      /** The broken rules of the profile; `undefined` if it permits the request. */
      readonly violations: Violations | undefined;
    };

/** `ignored`: the result of triage.ts. */
export function readAndCheckRequest(
  object: RequestObject,
  profiles: Profiles,
  ignored: IgnoredWhy | undefined,
): RequestCheck {
  if (ignored !== undefined) return { kind: 'ignored', why: ignored };
  if (object.signerName !== undefined && !profiles.has(object.signerName)) return unknownSigner;
  const { decoded, signerName, profile } = readRequest(object, profiles);
  if (!decoded.ok) return { kind: 'unreadable', violations: decoded.problem };
  if (signerName === undefined || profile === undefined) return unknownSigner;
  const request = decoded.value;
  const [first, ...more] = checkProfile(profile, object, request);
  const violations: Violations | undefined = first === undefined ? undefined : [first, ...more];
  return { kind: 'readable', request, signerName, profile, violations };
}

export interface ReadRequest {
  readonly decoded: Result<CertificateRequest, Violations>;
  /** `undefined` if the object names no signer (v1beta1) and its request is unreadable, so that no default applies. */
  readonly signerName: string | undefined;
  /** `undefined` if the cluster has no profile of that name. */
  readonly profile: Profile | undefined;
}

/** Without the checks: `csr explain` shows each part even of a request that is ignored or unreadable. */
export function readRequest(object: RequestObject, profiles: Profiles): ReadRequest {
  const named = profiles.get(object.signerName ?? '');
  const decoded = decodeFor(named, object.request);
  if (object.signerName !== undefined) return { decoded, signerName: object.signerName, profile: named };
  const signerName = decoded.ok ? defaultSignerName(object, decoded.value) : undefined;
  return { decoded, signerName, profile: profiles.get(signerName ?? '') };
}

/** The part of a profile that says which blocks may follow the certificate request. */
export type BlockPolicy = Pick<Profile, 'attestation' | 'requestBlocks'>;

/** `profile`: of the signer that the object names. */
export function decodeFor(
  profile: BlockPolicy | undefined,
  request: Uint8Array,
): Result<CertificateRequest, Violations> {
  if (profile?.attestation?.providers.includes('gce-vtpm') === true) return decodeRequest(request, 'either');
  if (profile?.requestBlocks === undefined) return decodeRequest(request);
  const decoded = decodeRequest(request, profile.requestBlocks);
  if (!decoded.ok || decoded.value.evidence.length === 0) return decoded;
  // The approver believes what these blocks say, so each of them must be readable in one way only.
  const read = readVmEvidence(decoded.value);
  return read.ok ? decoded : failure([read.problem]);
}

const unknownSigner: RequestCheck = { kind: 'ignored', why: 'UnknownSigner' };
