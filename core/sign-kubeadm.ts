/**
 * One certificate of kubeadm's control plane, for an operator: from the certificate request that kubeadm wrote to the certificate, or the
 * reason for a refusal. The only place that gives the reserved names of the control plane (docs/ca/kubeadm.md).
 *
 * The record of the ledger has the request's digest in its key. So the same request gets the same certificate, however often it is
 * sent, and `cert list`, `audit reconcile` and `cert revoke` see these certificates like all others.
 */
import { checkLocks } from './attestation/locks.ts';
import type { CaFault, LoadedCa } from './ca/authority.ts';
import type { CaConfiguration, KubeadmConfiguration } from './configuration/model/cluster.ts';
import { sha256 } from './encoding/digest.ts';
import { toPem } from './encoding/pem.ts';
import { kubeadmProfiles } from './kubeadm/certificates.ts';
import type { KubeadmCa, KubeadmCertificate, KubeadmProfile } from './kubeadm/certificates.ts';
import { checkKubeadmRequest } from './kubeadm/check-request.ts';
import { requestDigest } from './kubernetes/request-digest.ts';
import { requestFacts } from './kubernetes/request-facts.ts';
import { refusalMessage, refusalReason } from './outcome/outcome.ts';
import type { RefusalCode, Violations } from './outcome/outcome.ts';
import { kubeadmSignerName } from './policy/signer-names.ts';
import { kubeadmUidPrefix } from './ports/certificate-ledger.ts';
import type { Intent } from './ports/certificate-ledger.ts';
import type { Instant } from './ports/instant.ts';
import type { LockReader } from './ports/locks.ts';
import { leaseMilliseconds, signOnce } from './sign-once.ts';
import type { SignOncePorts } from './sign-once.ts';
import { decodeRequest } from './x509/certificate-request.ts';
import { buildTbs, issuerOf } from './x509/leaf-certificate.ts';
import type { Authority } from './x509/leaf-certificate.ts';
import type { CertificateRequest } from './x509/model.ts';
import { serialFrom, serialOctets, validity } from './x509/validity.ts';

export interface KubeadmRequest {
  readonly certificate: KubeadmCertificate;
  /** PEM, as kubeadm wrote it. */
  readonly csr: string;
  /** The operator says so of super-admin.conf. */
  readonly includeSuperAdmin: boolean;
  /** All checks, and nothing is recorded or signed. */
  readonly dryRun: boolean;
  /** The ARN or user name that the operator's program reports, for the ledger. */
  readonly requester: string;
}

export interface KubeadmCluster {
  readonly name: string;
  readonly cas: ReadonlyMap<string, CaConfiguration>;
  readonly kubeadm: KubeadmConfiguration;
}

export interface KubeadmPorts extends SignOncePorts {
  readonly locks: LockReader;
  readonly loadCa: (ca: CaConfiguration) => Promise<LoadedCa>;
  readonly now: () => Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
}

/**
 * `NotConfigured`: countersign.yaml has no such certificate. `NotIncluded`: super-admin.conf without the operator's word for it.
 * `InProgress`: temporary, another call signs this request.
 */
export type KubeadmRefusal = RefusalCode | CaFault | 'NotConfigured' | 'NotIncluded' | 'InProgress';

export type KubeadmResult =
  | {
      readonly ok: true;
      /** PEM: the certificate, then the CAs below the root. Absent after a dry run. */
      readonly certificatePem?: string;
      /** Name and certificate of the CA. */
      readonly ca: string;
      readonly caPem: string;
    }
  | { readonly ok: false; readonly why: KubeadmRefusal; readonly message: string };

/** Throws if the failure is temporary. */
export async function signForKubeadm(
  asked: KubeadmRequest,
  cluster: KubeadmCluster,
  ports: KubeadmPorts,
): Promise<KubeadmResult> {
  // Does the configuration permit this certificate, and which CA signs it?
  const profile: KubeadmProfile = kubeadmProfiles[asked.certificate];
  const { kubeadm: settings } = cluster;
  const ca = cluster.cas.get(settings.cas[profile.ca] ?? '');
  if (ca === undefined) return { ok: false, ...notConfigured(cluster.name, profile.ca) };
  if (profile.isSuperAdmin === true && !asked.includeSuperAdmin)
    return refuse(
      'NotIncluded',
      `${asked.certificate} bypasses all authorization; ask for it with --include super-admin`,
    );

  // Is the request exactly what kubeadm would ask for, and is neither its node nor its key locked?
  const decoded = decodeRequest(Buffer.from(asked.csr, 'utf8'));
  if (!decoded.ok) return refuseFor(decoded.problem);
  const request = decoded.value;
  const { violations, node } = checkKubeadmRequest(asked.certificate, request, settings);
  const [first, ...others] = violations;
  if (first !== undefined) return refuseFor([first, ...others]);
  const concerned = { username: '', requesterNodes: node === undefined ? [] : [node] };
  const locked = await checkLocks(concerned, request, ports.locks);
  if (locked !== undefined) return refuseFor([locked]);

  const loaded = await ports.loadCa(ca);
  if (!loaded.ok) return refuse(loaded.problem.why, loaded.problem.message);
  const authority = loaded.value;
  const signedBy = { ok: true, ca: ca.name, caPem: toPem('CERTIFICATE', authority.certificate) } as const;
  if (asked.dryRun) return signedBy;

  // Record an intent, or find the record of an earlier call. Then sign exactly the recorded bytes.
  const { crlDistributionPoint } = ca;
  const question = { asked, cluster, profile, request, authority, maxTtlSeconds: settings.maxTtlSeconds };
  const plan = planCertificate(
    crlDistributionPoint === undefined ? question : { ...question, crlDistributionPoint },
    ports,
  );
  const before = await ports.ledger.find(plan.uid);
  if (before?.state === 'issued' && before.notAfter <= plan.openedAt)
    return refuse(
      'KeyReused',
      'the certificate of this request has expired; have kubeadm create a new key and request',
    );
  const outcome = await signOnce(plan, { request, authority }, ports);
  switch (outcome.kind) {
    case 'issued':
      return { ...signedBy, certificatePem: outcome.certificatePem };
    case 'refused':
      return refuseFor(outcome.violations);
    case 'busy':
      return refuse('InProgress', 'another call signs this request just now; try again in half a minute');
  }
}

export function notConfigured(
  cluster: string,
  ca?: KubeadmCa,
): { readonly why: 'NotConfigured'; readonly message: string } {
  const key = ca === undefined ? 'kubeadm' : `kubeadm.cas.${ca}`;
  return { why: 'NotConfigured', message: `the configuration of cluster ${cluster} has no ${key}` };
}

interface Question {
  readonly asked: KubeadmRequest;
  readonly cluster: KubeadmCluster;
  readonly profile: KubeadmProfile;
  readonly request: CertificateRequest;
  readonly authority: Authority;
  readonly maxTtlSeconds: number;
  readonly crlDistributionPoint?: string;
}

function planCertificate(question: Question, ports: KubeadmPorts): Intent {
  const { asked, cluster, profile, request, authority, maxTtlSeconds, ...rest } = question;
  const now = ports.now();
  const { notAfter: caNotAfter } = issuerOf(authority).facts;
  const span = validity({ maxTtlSeconds, expirationSeconds: undefined, caNotAfter, now });
  const serial = serialFrom(ports.randomBytes(serialOctets));
  const uid = `${kubeadmUidPrefix}${authority.name}/${asked.certificate}/${sha256(request.der).toString('hex')}`;
  const { usages } = profile;
  // The digest is without the requester: another operator may go on where one ended.
  const object = { uid, request: request.der, usages, username: '', groups: [] };
  return {
    uid,
    requestDigest: requestDigest(cluster.name, object, kubeadmSignerName),
    caKeyId: authority.signer.keyId,
    tbs: buildTbs({ request, usages, serial, ...span, ...rest }, authority),
    serial: Buffer.from(serial).toString('hex'),
    notAfter: span.notAfter,
    openedAt: now,
    leaseUntil: now + leaseMilliseconds,
    request: requestFacts({ usages, username: asked.requester, groups: [] }, kubeadmSignerName),
    ...(ports.lambdaRequestId === undefined ? {} : { lambdaRequestId: ports.lambdaRequestId }),
  };
}

function refuse(why: KubeadmRefusal, message: string): KubeadmResult {
  return { ok: false, why, message };
}

function refuseFor(violations: Violations): KubeadmResult {
  return refuse(refusalReason(violations), refusalMessage(violations).replaceAll('spec.request', 'the request'));
}
