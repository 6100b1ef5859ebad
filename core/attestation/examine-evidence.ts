/** What the node sent as evidence, judged as far as that goes without asking anybody (docs/attestation.md). */
import type { AttestationProvider, Examined, Machine, Refused } from './evidence/provider.ts';
import type { AttestQuestion } from './attest-question.ts';
import { bindingDigest } from './evidence/binding-digest.ts';
import { decodeEvidence } from './evidence/evidence.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import { MisconfigurationError } from '../ports/errors.ts';

export interface Refusal {
  readonly admitted: false;
  readonly violations: Violations;
  readonly annotations?: Readonly<Record<string, string>>;
}

export type EvidenceResult =
  /** Somebody proved to be that machine; the platform is asked once, however often the record has to be read again. */
  | {
      readonly kind: 'evidence';
      /** `aws/v2`: provider and version of what was sent. */
      readonly version: string;
      readonly provider: AttestationProvider;
      readonly examined: Examined;
      readonly machine: () => Promise<Machine | Refused>;
    }
  /** A stock kubelet's serving request: the API server vouches for the node, the record for the machine behind it. */
  | { readonly kind: 'record' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Everything that can be said of the evidence without asking anybody. */
export function examineEvidence(
  question: AttestQuestion,
  providers: ReadonlyMap<string, AttestationProvider>,
): EvidenceResult | 'unattested' {
  const { wanted, request, serving, signerName } = question;
  const accepted = wanted.providers.map((name) => present(providers.get(name), name));
  const sent = decodeEvidence(request.evidence) ?? defaultEvidence(accepted);
  if (sent === undefined) {
    if (!wanted.required) return 'unattested';
    // kubernetes.io/kubelet-serving is what stock kubelets post, and they know nothing of evidence.
    if (serving && signerName.startsWith('kubernetes.io/')) return { kind: 'record' };
    return refuse(violation('AttestationMissing', missing(accepted)));
  }
  if ('code' in sent) return refuse(sent);
  const provider = accepted.find(({ versions }) => versions.includes(sent.version));
  if (provider === undefined) return unsupported(sent.version, accepted);
  const { cluster, settings, nodeName, now } = question;
  const examined = provider.examine({
    ...sent,
    request,
    nodeName,
    clusterName: cluster,
    binding: (nonce) =>
      bindingDigest({ audience: settings.audience, signerName, nodeName, nonce, spki: request.publicKey.spki }),
    now,
  });
  if ('violations' in examined) return { kind: 'refused', refusal: { admitted: false, ...examined } };
  let asked: Promise<Machine | Refused> | undefined;
  return { kind: 'evidence', version: sent.version, provider, examined, machine: () => (asked ??= examined.verify()) };
}

/** Where nothing can be proved, an empty proof does as well. */
function defaultEvidence(accepted: readonly AttestationProvider[]): { version: string; data: Uint8Array } | undefined {
  const [only, ...others] = accepted;
  if (only === undefined || others.length > 0 || only.secure) return undefined;
  return { version: only.versions[0], data: Buffer.from('{"v":1}') };
}

function missing(accepted: readonly AttestationProvider[]): string {
  return `the request brings no evidence; this signer takes ${versionsOf(accepted)} (kubelet-authenticator makes it)`;
}

/** Cluster API's proposal, Version skew: the annotation tells an older or newer node what to send instead. */
function unsupported(sent: string, accepted: readonly AttestationProvider[]): EvidenceResult {
  const versions = versionsOf(accepted);
  return {
    kind: 'refused',
    refusal: {
      admitted: false,
      violations: [
        violation(
          'AttestationVersion',
          `evidence ${sent} is not taken here, but ${versions}: update kubelet-authenticator, or the node's own script`,
        ),
      ],
      annotations: { 'countersign.dev/supported-attestation-versions': versions },
    },
  };
}

function versionsOf(accepted: readonly AttestationProvider[]): string {
  return accepted.flatMap(({ versions }) => versions).join(',');
}

function refuse(...violations: Violations): EvidenceResult {
  return { kind: 'refused', refusal: { admitted: false, violations } };
}

function present(provider: AttestationProvider | undefined, name: string): AttestationProvider {
  if (provider === undefined) throw new MisconfigurationError(`attestation provider ${name} is not configured`);
  return provider;
}
