/** A CertificateSigningRequest for people: requester, requested names, key and state. The requester wrote all text in it. */
import { createHash } from 'node:crypto';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { Condition, RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import { decodeRequest } from '../../core/x509/certificate-request.ts';
import { subjectText } from '../../core/x509/distinguished-name.ts';
import type { CertificateRequest } from '../../core/x509/model.ts';

export const requestStates = ['pending', 'approved', 'denied', 'failed', 'issued'] as const;
export type RequestState = (typeof requestStates)[number];

export interface RequestView {
  readonly name: string;
  readonly uid: string;
  /** RFC 3339, as the API server has it. */
  readonly createdAt: string;
  readonly signerName: string;
  readonly requester: string;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
  readonly state: RequestState;
  /** Of the condition that decided. */
  readonly reason?: string;
  readonly message?: string;
  /** As the relay's approval names it. For people, and no rule reads it: every approver may write the same. */
  readonly machine?: string;
  /** What spec.request asks for, or why it cannot be read. */
  readonly asked: AskedFor | { readonly problem: string };
}

export interface AskedFor {
  readonly subject: string;
  readonly dnsNames: readonly string[];
  readonly addresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  /** `ECDSA P-256`, `RSA 2048` … */
  readonly key: string;
  /** SHA-256 of the SubjectPublicKeyInfo, in hex: what the requester can read from its own key. */
  readonly keyFingerprint: string;
}

/** `raw`: as the API server sends it. `undefined` for an object that is no request. */
export function requestView(raw: unknown): RequestView | undefined {
  const decoded = decodeRequestObject(raw);
  if (!decoded.ok) return undefined;
  const object = decoded.value;
  const { creationTimestamp, annotations } = objectOf(objectOf(raw)['metadata']);
  const { state, condition } = stateOf(object);
  const machine = attestedMachine(object, objectOf(annotations));
  return {
    name: object.name,
    uid: object.uid,
    createdAt: typeof creationTimestamp === 'string' ? creationTimestamp : '',
    signerName: object.signerName ?? '',
    requester: object.username,
    groups: object.groups,
    usages: object.usages,
    ...(object.expirationSeconds === undefined ? {} : { expirationSeconds: object.expirationSeconds }),
    state,
    ...(condition?.reason === undefined ? {} : { reason: condition.reason }),
    ...(condition?.message === undefined ? {} : { message: condition.message }),
    ...(machine === undefined ? {} : { machine }),
    asked: askedFor(object.request),
  };
}

/** The requester can write the annotation too. With its approval the relay replaces it. */
function attestedMachine({ conditions }: RequestObject, annotations: JsonObject): string | undefined {
  const { 'countersign.dev/identity': identity } = annotations;
  const isRelays = conditions.some(({ type, reason }) => type === 'Approved' && reason === 'AutoApproved');
  return isRelays && typeof identity === 'string' ? identity : undefined;
}

/** A denied or failed request gets no certificate, whatever else is written there. */
function stateOf({ conditions, hasCertificate }: RequestObject): { state: RequestState; condition?: Condition } {
  for (const [type, state] of [
    ['Denied', 'denied'],
    ['Failed', 'failed'],
    ['Approved', hasCertificate ? 'issued' : 'approved'],
  ] as const) {
    const condition = conditions.find((one) => one.type === type);
    if (condition !== undefined) return { state, condition };
  }
  return { state: 'pending' };
}

function askedFor(request: Uint8Array): RequestView['asked'] {
  // GKE's blocks too: a list has requests of all signers, and no profile is known.
  const decoded = decodeRequest(request, 'either');
  return decoded.ok ? facts(decoded.value) : { problem: decoded.problem[0].message };
}

function facts({ subject, sans, publicKey }: CertificateRequest): AskedFor {
  return {
    subject: subjectText(subject),
    dnsNames: sans.dns,
    addresses: sans.ip,
    emailAddresses: sans.email,
    uris: sans.uri,
    key: publicKey.description,
    keyFingerprint: createHash('sha256').update(publicKey.spki).digest('hex'),
  };
}
