/** Makes all checks of the evidence that need no network (docs/attestation.md). */
import { violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import type { Result } from '../outcome/result.ts';
import { MisconfigurationError } from '../ports/errors.ts';
import type { AttestQuestion } from './attest-question.ts';
import { refuse } from './declined.ts';
import type { Refused } from './declined.ts';
import { bindingDigest } from './evidence/binding-digest.ts';
import { decodeEvidence, evidenceTooOld } from './evidence/evidence.ts';
import type { SentEvidence } from './evidence/evidence.ts';
import type { AttestationProvider, Examined, Machine } from './evidence/provider.ts';

export type EvidenceResult =
  /** The request needs no attestation and has no evidence. */
  | { readonly kind: 'unattested' }
  /** A stock kubelet's serving request: the API server authenticated the node, and the record names its machine. */
  | { readonly kind: 'record' }
  | Evidence
  | Refused;

export interface Evidence {
  readonly kind: 'evidence';
  /** Provider and version of the evidence: `aws/v2`. */
  readonly version: string;
  readonly provider: AttestationProvider;
  readonly examined: Examined;
  /** Asks the platform once, even if the records have to be read again. */
  readonly machine: () => Promise<Result<Machine, Violations>>;
}

export async function examineEvidence(
  question: AttestQuestion,
  providers: ReadonlyMap<string, AttestationProvider>,
): Promise<EvidenceResult> {
  const { wanted, request, serving, signerName } = question;
  const accepted = wanted.providers.map((name) => configured(providers.get(name), name));
  const decoded = decodeEvidence(request.evidence);
  if (!decoded.ok) return refuse(decoded.problem);
  const sent = decoded.value ?? defaultEvidence(accepted);
  if (sent === undefined) {
    if (!wanted.required) return { kind: 'unattested' };
    // Stock kubelets request kubernetes.io/kubelet-serving, and cannot send evidence.
    if (serving && signerName.startsWith('kubernetes.io/')) return { kind: 'record' };
    return refuse(violation('AttestationMissing', missing(accepted)));
  }
  const provider = accepted.find(({ versions }) => versions.includes(sent.version));
  if (provider === undefined) return unsupported(sent.version, accepted);
  const { cluster, settings, nodeName, now } = question;
  const examined = await provider.examine({
    ...sent,
    request,
    nodeName,
    clusterName: cluster,
    binding: (nonce) =>
      bindingDigest({ audience: settings.audience, signerName, nodeName, nonce, spki: request.publicKey.spki }),
    pcrs: wanted.pcrs,
    now,
  });
  if (!examined.ok) {
    const refused = refuse(...examined.problem);
    return examined.problem[0] === evidenceTooOld ? { ...refused, uncounted: true } : refused;
  }
  let asked: Promise<Result<Machine, Violations>> | undefined;
  return {
    kind: 'evidence',
    version: sent.version,
    provider,
    examined: examined.value,
    machine: () => (asked ??= examined.value.verify()),
  };
}

/** If `insecure` is the only accepted provider, the request may omit evidence. */
function defaultEvidence(accepted: readonly AttestationProvider[]): SentEvidence | undefined {
  const [only, ...others] = accepted;
  if (only === undefined || others.length > 0 || only.secure) return undefined;
  return { version: only.versions[0], data: Buffer.from('{"v":1}') };
}

function missing(accepted: readonly AttestationProvider[]): string {
  return `the request brings no evidence; this signer takes ${versionsOf(accepted)} (kubelet-authenticator makes it)`;
}

/** Cluster API's proposal, Version skew: the annotation tells an older or newer node what to send instead. */
function unsupported(sent: string, accepted: readonly AttestationProvider[]): Refused {
  const versions = versionsOf(accepted);
  const message = `evidence ${sent} is not taken here, but ${versions}: update kubelet-authenticator, or the node's own script`;
  return {
    ...refuse(violation('AttestationVersion', message)),
    annotations: { 'countersign.dev/supported-attestation-versions': versions },
  };
}

function versionsOf(accepted: readonly AttestationProvider[]): string {
  return accepted.flatMap(({ versions }) => versions).join(',');
}

function configured(provider: AttestationProvider | undefined, name: string): AttestationProvider {
  if (provider === undefined) throw new MisconfigurationError(`attestation provider ${name} is not configured`);
  return provider;
}
