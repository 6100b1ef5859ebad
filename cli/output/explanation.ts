/**
 * A dry run of core/issue.ts for one request: each check in its order, with the value that it saw. It calls the same
 * functions, without the ledger and the key, so it does not know an earlier answer to the same UID.
 */
import type { CaConfiguration, ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { ReadRequest } from '../../core/read-and-check-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { encodeCaSubject } from '../../core/x509/ca-certificate.ts';
import { readCertificate } from '../../core/x509/read-certificate.ts';
import { decodePem } from '../../core/encoding/pem.ts';
import { validity } from '../../core/x509/validity.ts';
import { refusalMessage, refusalReason } from '../../core/outcome/outcome.ts';
import type { Violation } from '../../core/outcome/outcome.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { explainProfile } from '../../core/policy/check-profile.ts';
import type { Profile } from '../../core/policy/profile.ts';
import { atMost, printable, printableUpTo } from '../../core/outcome/printable-text.ts';
import { triage, triagePending } from '../../core/kubernetes/triage.ts';
import { readRequest } from '../../core/read-and-check-request.ts';

export interface Check {
  readonly check: string;
  /** `wait`: not decided yet, and nothing is wrong. `none`: it does not apply to this request. */
  readonly result: 'pass' | 'fail' | 'wait' | 'none';
  readonly seen: string;
  readonly violations: readonly Violation[];
}

/** The certificate in `status.certificate`. `issuedBy` compares names only and verifies no signature; the ledger is the authority. */
interface GivenCertificate {
  /** `unknown`: the certificate is unreadable, or no countersign.yaml names the cluster's CA. */
  readonly issuedBy: 'this CA' | 'another CA' | 'unknown';
  /** Set if the certificate is readable. */
  readonly facts?: {
    readonly issuer: string;
    readonly serial: string;
    /** RFC 3339. */
    readonly notBefore: string;
    readonly notAfter: string;
  };
}

export interface Explanation {
  readonly name: string;
  readonly uid: string;
  /** Empty if the request is unreadable and no signer was named. */
  readonly signerName: string;
  readonly cluster: string;
  /** What the signer would do now. */
  readonly outcome:
    | 'issue'
    | 'wait'
    | 'refuse'
    /** The request has its certificate; `foreign`: it has a certificate that this cluster's CA did not issue. */
    | 'issued'
    | 'foreign'
    /** Denied or Failed before, by this signer or by another client that may write the condition. */
    | 'failed'
    | 'denied'
    /** No profile of this cluster has the request's signer name. */
    | 'ignore';
  /** A sentence for people; for `refuse` the message of the Failed condition. */
  readonly message: string;
  /** For `refuse`: the reason of the Failed condition. */
  readonly reason?: string;
  readonly checks: readonly Check[];
  /** The certificate's validity if it were signed now; shorter if the CA expires before. */
  readonly validity?: { readonly notBefore: string; readonly notAfter: string };
  /** Set if the request has a certificate. */
  readonly certificate?: GivenCertificate;
  /** Requested extensions, by object identifier, that the certificate will not carry. */
  readonly droppedExtensions: readonly string[];
}

/** The only requested extension that the certificate takes over. */
const subjectAltNameType = '2.5.29.17';

/** `caIsConfigured`: a countersign.yaml names the cluster's CA. */
interface CertificateStatus {
  /** base64 of PEM; empty without a certificate. */
  readonly certificate: string;
  readonly caIsConfigured: boolean;
}

export function explain(
  object: RequestObject,
  cluster: ClusterConfiguration,
  now: Instant,
  { certificate, caIsConfigured }: CertificateStatus,
): Explanation {
  const { decoded, signerName, profile } = readRequest(object, cluster.profiles);
  // A pending request is checked as if it were approved.
  const pending = triage(object) === 'NotApproved';

  const checks = [
    signerCheck(signerName, profile),
    stateCheck(object),
    readingCheck(decoded),
    ...(decoded.ok && profile !== undefined ? explainProfile(profile, object, decoded.value).map(ruleCheck) : []),
  ];
  const explanation = {
    name: object.name,
    uid: object.uid,
    signerName: signerName ?? '',
    cluster: cluster.name,
    checks,
    droppedExtensions: decoded.ok
      ? decoded.value.requestedExtensions.filter((type) => type !== subjectAltNameType)
      : [],
  };
  if (signerName !== undefined && profile === undefined)
    return {
      ...explanation,
      outcome: 'ignore',
      message: 'no profile of this cluster has that signer name; another signer may answer it',
    };
  const settled = triagePending(object);
  if (settled !== undefined) {
    const ca = profile === undefined || !caIsConfigured ? undefined : cluster.cas.get(profile.ca);
    return { ...explanation, ...settledOutcome(settled, object, givenCertificate(certificate, ca)) };
  }
  const [first, ...more] = checks.flatMap(({ violations }) => violations);
  if (first !== undefined) {
    const all = [first, ...more] as const;
    return { ...explanation, outcome: 'refuse', reason: refusalReason(all), message: refusalMessage(all) };
  }
  const signed = { ...explanation, validity: lifetime(object, profile?.maxTtlSeconds ?? 0, now) };
  return pending
    ? { ...signed, outcome: 'wait', message: 'it would be signed once it is approved' }
    : { ...signed, outcome: 'issue', message: 'it would be signed' };
}

/** The outcome of a request that is denied, failed or issued. */
function settledOutcome(
  why: NonNullable<ReturnType<typeof triagePending>>,
  { conditions }: RequestObject,
  certificate: GivenCertificate,
): Pick<Explanation, 'outcome' | 'message' | 'certificate'> {
  switch (why) {
    case 'Denied':
      return { outcome: 'denied', message: `it was denied${conditionReason(conditions, 'Denied')}` };
    case 'Failed':
      return {
        outcome: 'failed',
        message: `it failed before${conditionReason(conditions, 'Failed')}. It stays failed; its requester must make a new request`,
      };
    case 'AlreadyIssued': {
      const { facts, issuedBy } = certificate;
      if (facts === undefined)
        return {
          outcome: 'foreign',
          message: 'its status.certificate holds no certificate that can be read',
          certificate,
        };
      const { issuer, notBefore, notAfter, serial } = facts;
      const issued = `issued by ${printableUpTo(200, issuer)}, valid from ${notBefore} to ${notAfter}, serial ${serial}`;
      return issuedBy === 'another CA'
        ? {
            outcome: 'foreign',
            message: `it has a certificate that this cluster’s CA did not issue: ${issued}`,
            certificate,
          }
        : {
            outcome: 'issued',
            message: `valid until ${notAfter} (from ${notBefore}), issued by ${printableUpTo(200, issuer)}, serial ${serial}`,
            certificate,
          };
    }
  }
}

/** `: <reason>: <message>` of the condition: untrusted text of the client that wrote the status. */
function conditionReason(conditions: RequestObject['conditions'], type: string): string {
  const { reason = '', message = '' } = conditions.find((condition) => condition.type === type) ?? {};
  const words = [printable(reason), printableUpTo(500, message)].filter((word) => word !== '');
  return words.length === 0 ? '' : `: ${words.join(': ')}`;
}

function signerCheck(signerName: string | undefined, profile: Profile | undefined): Check {
  return {
    check: 'the signer is one of this cluster’s',
    result: profile === undefined ? 'fail' : 'pass',
    seen: signerName === undefined ? 'none named' : printable(signerName),
    violations: [],
  };
}

function stateCheck(object: RequestObject): Check {
  const why = triage(object);
  return {
    check: 'approved, and not denied, failed or issued',
    result: stateResult(why),
    seen:
      [
        ...atMost(object.conditions.map(conditionText), (text) => text),
        ...(object.hasCertificate ? ['a certificate'] : []),
      ].join(', ') || 'pending',
    violations: [],
  };
}

/** A request that has its certificate is neither accepted nor refused again. Another CA's certificate is the outcome's to tell. */
function stateResult(why: ReturnType<typeof triage>): Check['result'] {
  switch (why) {
    case undefined:
      return 'pass';
    case 'NotApproved':
      return 'wait';
    case 'AlreadyIssued':
      return 'none';
    case 'UnknownSigner':
    case 'Denied':
    case 'Failed':
      return 'fail';
  }
}

function conditionText({ type, status, reason }: RequestObject['conditions'][number]): string {
  const unusual = status === undefined || status === 'True' ? '' : `=${status}`;
  return printable(`${type}${unusual}${reason === undefined || reason === '' ? '' : ` (${reason})`}`);
}

function readingCheck(decoded: ReadRequest['decoded']): Check {
  return {
    check: 'readable, and signed with its own key',
    result: decoded.ok ? 'pass' : 'fail',
    seen: decoded.ok ? decoded.value.publicKey.description : 'undecodable',
    violations: decoded.ok ? [] : decoded.problem,
  };
}

function ruleCheck({ check, observed, applies, violations }: ReturnType<typeof explainProfile>[number]): Check {
  const passed = applies ? 'pass' : 'none';
  return { check, result: violations.length === 0 ? passed : 'fail', seen: observed, violations };
}

/** Stands for the CA's notAfter, which this dry run does not know. */
const latestDate: Instant = 8_640_000_000_000_000;

function lifetime({ expirationSeconds }: RequestObject, maxTtlSeconds: number, now: Instant) {
  const span = validity({ maxTtlSeconds, expirationSeconds, caNotAfter: latestDate, now });
  return { notBefore: new Date(span.notBefore).toISOString(), notAfter: new Date(span.notAfter).toISOString() };
}

/** `encoded` as in the object: base64 of PEM, the leaf first. `ca`: the CA of the signer's profile. */
function givenCertificate(encoded: string, ca: CaConfiguration | undefined): GivenCertificate {
  const blocks = decodePem(Buffer.from(encoded, 'base64'), ['CERTIFICATE']);
  const [leaf] = blocks.ok ? blocks.value : [];
  const read = readCertificate(leaf?.content ?? new Uint8Array());
  if (!read.ok) return { issuedBy: 'unknown' };
  const { issuer, issuerName, serial, notBefore, notAfter } = read.value;
  const ours = ca !== undefined && Buffer.from(encodeCaSubject(ca.subject)).equals(issuerName);
  return {
    issuedBy: ca === undefined ? 'unknown' : ours ? 'this CA' : 'another CA',
    facts: {
      issuer,
      serial,
      notBefore: new Date(notBefore).toISOString(),
      notAfter: new Date(notAfter).toISOString(),
    },
  };
}
