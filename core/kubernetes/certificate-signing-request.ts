import type { BodyProblem } from '../encoding/json-body.ts';
import { isObject } from '../encoding/json-object.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { maxRequestBytes } from '../x509/certificate-request.ts';

/**
 * Decodes the CertificateSigningRequest object that a caller posted. Only the fields that the rules use are read.
 * Source: k8s.io/api/certificates/{v1,v1beta1}, Kubernetes' CSR documentation.
 */

/** Limit of groups and of usages. Active Directory, which has the most groups, puts at most 1 024 into a token. */
const maxListEntries = 1_024;
/**
 * The relay refuses larger objects itself (docs/watch-relay.md). A normal object has a few KB; the largest spec.request has
 * 171 KiB in base64. With what the relay adds, the object stays within the API server's limits: 256 KiB of annotations,
 * 1.5 MiB in etcd.
 */
export const maxRelayedBytes = 196_608;

export interface Condition {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface RequestObject {
  readonly apiVersion: 'certificates.k8s.io/v1' | 'certificates.k8s.io/v1beta1';
  readonly name: string;
  readonly uid: string;
  /** Absent only in v1beta1, which has a default that depends on the request (Kubernetes' CSR documentation). */
  readonly signerName?: string;
  /** spec.request after base64 decoding: the PEM text as sent. */
  readonly request: Uint8Array;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
  readonly username: string;
  readonly groups: readonly string[];
  /** From spec.extra, if the requester is a pod: the node on which it runs (Kubernetes 1.30 and later). */
  readonly requesterNodes: readonly string[];
  readonly conditions: readonly Condition[];
  readonly hasCertificate: boolean;
}

/**
 * Bytes of a name in a URL. Requesters choose names, and the API server stores names that are too long for a URL: it reads
 * 1 MiB of URL and headers, but proxies and load balancers often read 8 KiB.
 */
const maxNameBytes = 4_096;

/** Whether a URL can hold the name, so that a client can read the object from the API server. */
export function isAddressable(name: string): boolean {
  // encodeURIComponent throws for a lone surrogate.
  return name.length <= maxNameBytes && name.isWellFormed() && encodeURIComponent(name).length <= maxNameBytes;
}

/** The API server copies it from the pod's token. KEP-4193; k8s.io/apiserver/pkg/authentication/serviceaccount. */
const nodeNameExtra = 'authentication.kubernetes.io/node-name';

/** Usages of a v1beta1 request without the field (pkg/apis/certificates/v1beta1/defaults.go); an empty list stays empty. */
const betaUsages: readonly string[] = ['digital signature', 'key encipherment'];

export function decodeRequestObject(json: unknown): Result<RequestObject, BodyProblem> {
  if (!isObject(json)) return wrong('body is not a JSON object');
  const { apiVersion, kind, metadata, spec } = json;
  if (apiVersion !== 'certificates.k8s.io/v1' && apiVersion !== 'certificates.k8s.io/v1beta1')
    return wrong('apiVersion is not certificates.k8s.io/v1 or v1beta1');
  if (kind !== 'CertificateSigningRequest') return wrong('kind is not CertificateSigningRequest');

  const status = json['status'] ?? {};
  if (!isObject(metadata)) return wrong('metadata is missing');
  if (!isObject(spec)) return wrong('spec is missing');
  if (!isObject(status)) return wrong('status is not an object');

  const name = metadata['name'];
  const uid = metadata['uid'];
  if (!isObjectName(name)) return wrong('metadata.name is not a name');
  // The UID is the key of the record that prevents a second signature.
  if (!isUid(uid)) return wrong('metadata.uid is not a UID');

  const signerName = spec['signerName'];
  if (signerName === undefined || signerName === '') {
    if (apiVersion === 'certificates.k8s.io/v1') return wrong('spec.signerName is missing');
  } else if (typeof signerName !== 'string' || signerName.length > 571) return wrong('spec.signerName is not a name');

  const encoded = spec['request'];
  if (typeof encoded !== 'string' || encoded === '') return wrong('spec.request is missing');
  if (encoded.length > Math.ceil(maxRequestBytes / 3) * 4)
    return wrong('spec.request is too large', { tooLarge: true });
  const request = decodeBase64(encoded);
  if (request === undefined) return wrong('spec.request is not base64');

  for (const field of ['usages', 'groups'] as const)
    if (Array.isArray(spec[field]) && spec[field].length > maxListEntries)
      return wrong(`spec.${field} has more than ${maxListEntries} entries`, { tooLarge: true });
  const usages = optionalStrings(spec['usages'] ?? (apiVersion === 'certificates.k8s.io/v1beta1' ? betaUsages : null));
  if (usages === undefined) return wrong('spec.usages is not a list of strings');
  const groups = optionalStrings(spec['groups']);
  if (groups === undefined) return wrong('spec.groups is not a list of strings');
  const username = spec['username'] ?? '';
  if (typeof username !== 'string') return wrong('spec.username is not a string');
  const extra = spec['extra'] ?? {};
  const requesterNodes = isObject(extra) ? optionalStrings(extra[nodeNameExtra]) : undefined;
  if (requesterNodes === undefined) return wrong('spec.extra is not a map of lists of strings');
  const expirationSeconds = spec['expirationSeconds'] ?? undefined;
  if (expirationSeconds !== undefined && !isInt32(expirationSeconds))
    return wrong('spec.expirationSeconds is not a 32-bit integer');

  const conditions = decodeConditions(status['conditions']);
  if (conditions === undefined) return wrong('status.conditions is not a list of conditions');
  const certificate = status['certificate'] ?? '';
  if (typeof certificate !== 'string') return wrong('status.certificate is not a string');

  return success({
    apiVersion,
    name,
    uid,
    ...(typeof signerName === 'string' && signerName !== '' ? { signerName } : {}),
    request,
    usages,
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    username,
    groups,
    requesterNodes,
    conditions,
    hasCertificate: certificate !== '',
  });
}

function wrong(message: string, size?: { readonly tooLarge: true }): Result<never, BodyProblem> {
  return failure({ message, ...size });
}

/**
 * Accepts the names that the API server accepts (ValidatePathSegmentName): one path segment, which may have spaces. With a
 * stricter rule an approved request would get no answer.
 */
function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && /^[^/%]{1,1024}$/s.test(value) && value !== '.' && value !== '..';
}

/** The API server creates UIDs. They must be printable and short, because they are keys of the ledger and appear in logs. */
function isUid(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$/.test(value);
}

function isInt32(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= -2_147_483_648 && value <= 2_147_483_647;
}

function optionalStrings(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return undefined;
  return value.every((item): item is string => typeof item === 'string') ? value : undefined;
}

function decodeConditions(value: unknown): readonly Condition[] | undefined {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > 1_000) return undefined;
  const conditions: Condition[] = [];
  for (const item of value) {
    if (!isObject(item)) return undefined;
    const { type, status, reason, message } = item;
    if (typeof type !== 'string') return undefined;
    if (status !== undefined && typeof status !== 'string') return undefined;
    conditions.push({
      type,
      ...(status === undefined ? {} : { status }),
      ...(typeof reason === 'string' ? { reason } : {}),
      ...(typeof message === 'string' ? { message } : {}),
    });
  }
  return conditions;
}

/** Strict base64 with padding (RFC 4648 §4). Buffer's decoder alone would skip unknown characters. */
function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
