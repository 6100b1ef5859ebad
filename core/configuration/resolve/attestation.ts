/**
 * Resolves which signers require attestation, and checks that no other signer issues the same node names without it.
 */
import type { ClusterAttestation } from '../model/attestation.ts';
import type { ProfileAttestation, Profile } from '../../policy/profile.ts';
import { resolveAws } from './aws-attestation.ts';
import type { Path, Report } from '../model/report.ts';
import type { ClusterInput, ProfileInput } from '../schema/cluster.ts';
import { letsInAll } from '../../policy/requester-patterns.ts';
import { resolveRanges } from './reserved.ts';
import { isNodeSigner } from '../../policy/signer-names.ts';
import type { SignerKind } from '../../policy/signer-names.ts';

// ── Profiles ────────────────────────────────────────────────────────────────────────────────────────────────────────

export function resolveProfileAttestation(
  signer: SignerKind,
  input: ProfileInput['attestation'],
  at: Path,
  report: Report,
): ProfileAttestation | undefined {
  if (input === undefined && signer.provider === undefined) return undefined;
  const place = [...at, 'attestation'];
  const { providers, required = true, mode = 'enforce', subjectAccessReview = false } = input ?? {};
  if (!isNodeSigner(signer)) report('error', place, 'only machines are attested: it is for the kubelet signers');
  else if (signer.provider !== undefined) {
    if (providers !== undefined && (providers.length !== 1 || providers[0] !== signer.provider))
      report('error', [...place, 'providers'], `the name of this signer says it: ${signer.provider}`);
    if (!required)
      report('error', [...place, 'required'], 'this signer is only for requests with evidence; it cannot be left out');
  } else if (providers === undefined) report('error', [...place, 'providers'], 'is required');
  else if (providers.includes('insecure'))
    report(
      'error',
      [...place, 'providers', providers.indexOf('insecure')],
      'has a signer of its own: cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure',
    );
  return {
    providers: signer.provider === undefined ? (providers ?? []) : [signer.provider],
    required,
    mode,
    subjectAccessReview,
  };
}

/** Whether every request is proven. First use alone (insecure) proves nothing, and neither does audit mode. */
export function isProven(attestation: ProfileAttestation | undefined): boolean {
  return (
    attestation !== undefined &&
    attestation.required &&
    attestation.mode === 'enforce' &&
    !attestation.providers.includes('insecure')
  );
}

/** Bootstrap tokens, and the token file of Kubernetes' TLS bootstrapping documentation. */
const bootstrapGroups = ['system:bootstrappers', 'system:bootstrappers:*'];

/**
 * The permitted requesters. Without attestation the approver decides, as in-tree. With attestation, only a joining machine and
 * the renewing node itself may ask. Insecure signers do not renew, as Cluster API proposes.
 */
export function resolveRequester(
  signer: SignerKind,
  attestation: ProfileAttestation | undefined,
  { requester }: ProfileInput,
  at: Path,
  report: Report,
): Profile['requester'] {
  const place = [...at, 'requester'];
  const insecure = signer.provider === 'insecure';
  // Signers under cluster.x-k8s.io/ were always attested, so no older requesters need access.
  const proven = isNodeSigner(signer) && !insecure && (signer.provider !== undefined || isProven(attestation));
  if (requester?.nodeItself === true && insecure)
    report('error', [...place, 'nodeItself'], 'an insecure signer does not renew');
  else if (requester?.nodeItself === true && !isNodeSigner(signer))
    report('error', [...place, 'nodeItself'], 'is for the kubelet signers');
  const nodeItself = requester?.nodeItself ?? proven;
  const joins = insecure || (proven && signer.kind !== 'kubelet-serving');
  const named = requester?.users !== undefined || requester?.groups !== undefined;
  const users = requester?.users ?? [];
  const groups = requester?.groups ?? (joins && !named ? bootstrapGroups : []);
  // Two empty lists would permit every requester, which an operator who removed all others did not intend.
  if ((proven || insecure) && !nodeItself && users.length + groups.length === 0)
    report('error', place, 'permits no requester: list users or groups');
  return { users, groups, ...(nodeItself ? { nodeItself: true } : {}) };
}

// ── Clusters ────────────────────────────────────────────────────────────────────────────────────────────────────────

export function resolveAttestation(
  cluster: string,
  input: ClusterInput,
  profiles: ReadonlyMap<string, Profile>,
  report: Report,
): ClusterAttestation | undefined {
  checkNodeClients(profiles, report);
  checkServing(profiles, report);
  const { attestation } = input;
  const wanted = new Set([...profiles.values()].flatMap((profile) => profile.attestation?.providers ?? []));
  if (wanted.size === 0) {
    if (attestation !== undefined)
      report('warning', ['attestation'], 'no profile of this cluster is attested: none of this holds');
    return undefined;
  }
  const at = ['attestation'];
  if (wanted.has('aws') && attestation?.aws === undefined)
    report('error', [...at, 'aws'], 'is required: a profile takes evidence of aws');
  if (!wanted.has('aws') && attestation?.aws !== undefined)
    report('warning', [...at, 'aws'], 'no profile of this cluster takes evidence of aws');
  const { account, region } = input.aws ?? {};
  const named = account === undefined || region === undefined ? undefined : `${account}/${region}/${cluster}`;
  const audience = attestation?.audience ?? named;
  // Evidence of an insecure provider is not bound to an audience.
  if (audience === undefined && [...wanted].some((provider) => provider !== 'insecure'))
    report('error', [...at, 'audience'], 'is required where aws.account and aws.region do not tell it');
  return {
    audience: audience ?? cluster,
    ...(attestation?.aws === undefined ? {} : { aws: resolveAws(attestation.aws, account, [...at, 'aws'], report) }),
    addressRanges: resolveRanges(attestation?.addressRanges, [...at, 'addressRanges'], report),
  };
}

/**
 * All node client signers issue the same names, so one without attestation makes the others' worthless: an attacker with a
 * bootstrap token would use that signer. Audit mode declares this as intended and temporary.
 */
function checkNodeClients(profiles: ReadonlyMap<string, Profile>, report: Report): void {
  const clients = [...profiles.values()].filter(({ kind }) => kind === 'kube-apiserver-client-kubelet');
  const proven = clients.find(({ attestation }) => isProven(attestation));
  if (proven === undefined) return;
  for (const { signerName, attestation } of clients) {
    if (isProven(attestation)) continue;
    const place = ['profiles', signerName];
    if (attestation?.mode === 'audit')
      report(
        'warning',
        [...place, 'attestation', 'mode'],
        `until it is enforced, ${proven.signerName} protects no node name: this signer gives the same ones`,
      );
    else
      report(
        'error',
        place,
        `gives without proof of the machine the node names that ${proven.signerName} gives only after it; attest it, or say attestation.mode: audit for a while`,
      );
  }
}

/** Serving requests are checked against the machine that the client request recorded, so a signer must record it. */
function checkServing(profiles: ReadonlyMap<string, Profile>, report: Report): void {
  const recorded = new Set(
    [...profiles.values()]
      .filter(({ kind, attestation }) => kind === 'kube-apiserver-client-kubelet' && attestation?.mode === 'enforce')
      .flatMap(({ attestation }) => attestation?.providers ?? []),
  );
  for (const { signerName, kind, attestation } of profiles.values())
    if (kind === 'kubelet-serving' && attestation?.mode === 'enforce')
      if (!attestation.providers.some((provider) => recorded.has(provider)))
        report(
          'warning',
          ['profiles', signerName],
          `no node client profile of this cluster enforces ${attestation.providers.join(' or ')}: only nodes that were adopted have a machine on record`,
        );
}

/** The relay approves a request only if the node rules or the list of requesters restrict it. */
export function checkApproval(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  report: Report,
): void {
  for (const { signerName, requester, attestation, ...profile } of profiles.values()) {
    const approved = approval.get(signerName) === 'approve';
    const all = letsInAll(requester);
    if (approved && !isNodeSigner(profile) && all !== undefined)
      report('error', ['approval', signerName], `would approve what ${all} asks for: name who may under requester`);
    if (!approved && attestation?.subjectAccessReview === true)
      report(
        'error',
        ['profiles', signerName, 'attestation', 'subjectAccessReview'],
        'is asked by the relay where it approves, and the approval of this signer is manual',
      );
  }
}

/** Two deployments with the same audience would accept each other's evidence. */
export function checkAudiences(
  attestations: Iterable<readonly [string, ClusterAttestation | undefined]>,
  report: (cluster: string, ...problem: Parameters<Report>) => void,
): void {
  const seen = new Map<string, string>();
  for (const [cluster, attestation] of attestations) {
    if (attestation === undefined) continue;
    const other = seen.get(attestation.audience);
    if (other === undefined) seen.set(attestation.audience, cluster);
    else report(cluster, 'error', ['attestation', 'audience'], `is that of cluster ${other} too; each needs its own`);
  }
}
