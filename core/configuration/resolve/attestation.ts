/**
 * Resolves which signers require attestation, and checks that no other signer issues the same node names without it.
 */
import type { ClusterAttestation } from '../model/attestation.ts';
import { leadsTo } from '../../encoding/pcr-extend.ts';
import type { PcrPolicy, ProfileAttestation, Profile } from '../../policy/profile.ts';
import { resolveAws } from '../providers/aws.ts';
import { resolveGce } from '../providers/gce.ts';
import { configuredBy, resolveAwsNitroTpm } from '../providers/aws-nitrotpm.ts';
import { resolveClusterApi } from '../providers/cluster-api.ts';
import { resolveGceVtpm } from '../providers/gce-vtpm.ts';
import { resolveTpm } from '../providers/tpm.ts';
import { resolveX509 } from '../providers/x509.ts';
import type { Place } from '../fields/place.ts';
import { profileAttestation } from '../schema/attestation.ts';
import type { ClusterInput, ProfileInput } from '../schema/cluster.ts';
import { letsInAll } from '../../policy/requester-patterns.ts';
import { resolveRanges } from './reserved.ts';
import { isNodeSigner } from '../../policy/signer-names.ts';
import type { SignerKind } from '../../policy/signer-names.ts';

// ── Profiles ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** `at`: the key `attestation` of the profile. */
export function resolveProfileAttestation(
  signer: SignerKind,
  input: ProfileInput['attestation'],
  at: Place,
): ProfileAttestation | undefined {
  if (input === undefined && signer.provider === undefined) return undefined;
  const { providers: listed, pcrs, ...rest } = input ?? profileAttestation.parse({});
  if (!isNodeSigner(signer)) at.error('only machines are attested: it is for the kubelet signers');
  else if (signer.provider !== undefined) {
    if (listed !== undefined && (listed.length !== 1 || listed[0] !== signer.provider))
      at('providers').error(`the name of this signer says it: ${signer.provider}`);
    if (!rest.required) at('required').error('this signer is only for requests with evidence; it cannot be left out');
  } else if (listed === undefined) at('providers').error('is required');
  else if (listed.includes('insecure'))
    at('providers', listed.indexOf('insecure')).error(
      'has a signer of its own: cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure',
    );
  const providers = signer.provider === undefined ? (listed ?? []) : [signer.provider];
  if (pcrs !== undefined && !providers.every((provider) => withTpm.has(provider)))
    at('pcrs').error('is for providers with a TPM only: the evidence of another one would be taken without');
  if (pcrs !== undefined) checkRecordedBoots(pcrs, at('pcrs', 'events'));
  return { providers, ...rest, ...(pcrs === undefined ? {} : { pcrs }) };
}

/** The providers whose evidence has a quote. */
const withTpm: ReadonlySet<string> = new Set(['tpm', 'aws-nitrotpm']);

/** Of a boot that is not permitted, a refusal would name an event that did not change. */
function checkRecordedBoots({ values, events = {} }: PcrPolicy, at: Place): void {
  for (const [pcr, boots] of Object.entries(events)) {
    boots.forEach((boot, index) => {
      const digests = boot.map((event) => Buffer.from(event.slice(0, 64), 'hex'));
      if (values[pcr]?.some((value) => leadsTo(value, Number(pcr), digests)) !== true)
        at(pcr, index).error(`leads to none of the values that PCR ${pcr} may have`);
    });
  }
}

/** Whether the signer issues only to proven machines. First use alone (insecure) proves nothing, and neither does audit mode. */
export function isProven(attestation: ProfileAttestation | undefined): boolean {
  return (
    attestation !== undefined &&
    attestation.required &&
    attestation.mode === 'enforce' &&
    !attestation.providers.includes('insecure')
  );
}

/** The user of gke-exec-auth-plugin, which is in no group of bootstrap tokens. */
const pluginUser = 'kubelet-bootstrap';
/** The groups of bootstrap tokens, and of the token file in Kubernetes' TLS bootstrapping documentation. */
const bootstrapGroups = ['system:bootstrappers', 'system:bootstrappers:*'];

/**
 * The permitted requesters. Without attestation the approver decides, as in-tree. With attestation, only a joining machine and
 * the renewing node itself may ask. Insecure signers do not renew, as Cluster API proposes. `at`: the key `requester`.
 */
export function resolveRequester(
  signer: SignerKind,
  attestation: ProfileAttestation | undefined,
  { requester }: ProfileInput,
  at: Place,
): Profile['requester'] {
  const insecure = signer.provider === 'insecure';
  // Signers under cluster.x-k8s.io/ were always attested, so no older requesters need access.
  const proven = isNodeSigner(signer) && !insecure && (signer.provider !== undefined || isProven(attestation));
  if (requester?.nodeItself === true && insecure) at('nodeItself').error('an insecure signer does not renew');
  else if (requester?.nodeItself === true && !isNodeSigner(signer))
    at('nodeItself').error('is for the kubelet signers');
  const nodeItself = requester?.nodeItself ?? proven;
  const forJoiningNodes = insecure || (proven && signer.kind !== 'kubelet-serving');
  const isListed = requester?.users !== undefined || requester?.groups !== undefined;
  const forPlugin = attestation?.providers.includes('gce-vtpm') === true;
  const forOthers = attestation?.providers.some((provider) => provider !== 'gce-vtpm') !== false;
  const users = requester?.users ?? (forJoiningNodes && !isListed && forPlugin ? [pluginUser] : []);
  const groups = requester?.groups ?? (forJoiningNodes && !isListed && forOthers ? bootstrapGroups : []);
  // Two empty lists would permit every requester, which an operator who removed all others did not intend.
  if ((proven || insecure) && !nodeItself && users.length + groups.length === 0)
    at.error('permits no requester: list users or groups');
  return { users, groups, ...(nodeItself ? { nodeItself: true } : {}) };
}

// ── Clusters ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** `at`: the cluster. */
export function resolveAttestation(
  cluster: string,
  { attestation, aws: { account, region } }: ClusterInput,
  profiles: ReadonlyMap<string, Profile>,
  at: Place,
): ClusterAttestation | undefined {
  checkNodeClients(profiles, at('profiles'));
  checkServing(profiles, at('profiles'));
  const providers = new Set([...profiles.values()].flatMap((profile) => profile.attestation?.providers ?? []));
  const here = at('attestation');
  if (providers.size === 0) {
    if (attestation !== undefined) here.warning('no profile of this cluster is attested: none of this holds');
    return undefined;
  }
  for (const section of ['aws', 'tpm', 'x509', 'gce', 'gce-vtpm'] as const) {
    const isConfigured = attestation?.[section] !== undefined;
    const takers = [...providers].filter((provider) => configuredBy(provider) === section);
    if (takers.length > 0 && !isConfigured)
      here(section).error(`is required: a profile takes evidence of ${takers.join(' and ')}`);
    if (takers.length === 0 && isConfigured)
      here(section).warning(`no profile of this cluster takes evidence of ${section}`);
  }
  const defaultAudience = account === undefined || region === undefined ? undefined : `${account}/${region}/${cluster}`;
  const audience = attestation?.audience ?? defaultAudience;
  // Evidence of these is not bound to an audience.
  if (audience === undefined && [...providers].some((provider) => !['insecure', 'gce-vtpm'].includes(provider)))
    here('audience').error('is required where aws.account and aws.region do not tell it');
  const gceVtpm = attestation?.['gce-vtpm'];
  return {
    audience: audience ?? cluster,
    ...(attestation?.aws === undefined ? {} : { aws: resolveAws(attestation.aws, account, here('aws')) }),
    ...resolveAwsNitroTpm(providers, here),
    ...(attestation?.tpm === undefined ? {} : { tpm: resolveTpm(attestation.tpm, here('tpm')) }),
    ...(attestation?.x509 === undefined ? {} : { x509: resolveX509(attestation.x509, here('x509')) }),
    ...(attestation?.gce === undefined ? {} : { gce: resolveGce(attestation.gce, here('gce')) }),
    ...(gceVtpm === undefined ? {} : { 'gce-vtpm': resolveGceVtpm(gceVtpm, here('gce-vtpm')) }),
    retireTerminated: attestation?.retireTerminated ?? true,
    ...resolveClusterApi(cluster, attestation, profiles.values(), here),
    addressRanges: resolveRanges(attestation?.addressRanges ?? [], here('addressRanges')),
  };
}

/**
 * All node client signers issue the same names, so one signer without attestation defeats the attestation of all others: an
 * attacker with a bootstrap token would use that signer. Audit mode declares this as intended and temporary.
 */
function checkNodeClients(profiles: ReadonlyMap<string, Profile>, at: Place): void {
  const clients = [...profiles.values()].filter(({ kind }) => kind === 'kube-apiserver-client-kubelet');
  const proven = clients.find(({ attestation }) => isProven(attestation));
  if (proven === undefined) return;
  for (const { signerName, attestation } of clients) {
    if (isProven(attestation)) continue;
    if (attestation?.mode === 'audit')
      at(signerName, 'attestation', 'mode').warning(
        `until it is enforced, ${proven.signerName} protects no node name: this signer gives the same ones`,
      );
    else
      at(signerName).error(
        `gives without proof of the machine the node names that ${proven.signerName} gives only after it; attest it, or say attestation.mode: audit for a while`,
      );
  }
}

/** Serving requests are checked against the machine that the client request recorded, so a signer must record it. */
function checkServing(profiles: ReadonlyMap<string, Profile>, at: Place): void {
  const enforced = [...profiles.values()].flatMap(({ signerName, kind, attestation }) =>
    attestation?.mode === 'enforce' ? [{ signerName, kind, providers: attestation.providers }] : [],
  );
  const recorded = new Set(
    enforced.flatMap(({ kind, providers }) => (kind === 'kube-apiserver-client-kubelet' ? providers : [])),
  );
  for (const { signerName, kind, providers } of enforced)
    if (kind === 'kubelet-serving' && !providers.some((provider) => recorded.has(provider)))
      at(signerName).warning(
        `no node client profile of this cluster enforces ${providers.join(' or ')}: only nodes that were adopted have a machine on record`,
      );
}

/** The relay approves a request only if the node rules or the list of requesters restrict it. `at`: the cluster. */
export function checkApproval(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  at: Place,
): void {
  for (const { signerName, requester, attestation, ...profile } of profiles.values()) {
    const approved = approval.get(signerName) === 'approve';
    const unlimited = letsInAll(requester);
    if (!approved && attestation?.providers.some((provider) => withTpm.has(provider)) === true)
      at('approval', signerName).warning(
        'is manual: only the relay, where it approves, passes the challenge of a TPM on to the node; a client of the webhook alone gets AttestationChallenge and cannot answer',
      );
    if (approved && !isNodeSigner(profile) && unlimited !== undefined)
      at('approval', signerName).error(`would approve what ${unlimited} asks for: name who may under requester`);
    if (!approved && attestation?.subjectAccessReview === true)
      at('profiles', signerName, 'attestation', 'subjectAccessReview').error(
        'is asked by the relay where it approves, and the approval of this signer is manual',
      );
  }
}

/** Two deployments with the same audience would accept each other's evidence. `at`: the map of clusters. */
export function checkAudiences(
  clusters: ReadonlyMap<string, { readonly attestation?: ClusterAttestation }>,
  at: Place,
): void {
  const seen = new Map<string, string>();
  for (const [cluster, { attestation }] of clusters) {
    if (attestation === undefined) continue;
    const other = seen.get(attestation.audience);
    if (other === undefined) seen.set(attestation.audience, cluster);
    else at(cluster, 'attestation', 'audience').error(`is that of cluster ${other} too; each needs its own`);
  }
}
