import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { Log } from '../../../../lambdas/watch-relay/runtime/log.ts';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const caKeys = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);

/** A certificate for that key. Not of countersign's making: the relay must judge any. */
export async function certificateFor(key: TestKey, { ca = false } = {}): Promise<string> {
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=test',
    issuer: 'CN=test CA',
    serialNumber: '4001',
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2027-01-01T00:00:00Z'),
    signingAlgorithm: P256,
    publicKey: new x509.PublicKey(key.spki),
    signingKey: caKeys.privateKey,
    extensions: [new x509.BasicConstraintsExtension(ca, undefined, true)],
  });
  return `${certificate.toString('pem').trimEnd()}\n`;
}

/** A CA certificate of that name for that key, signed by another one's. */
export async function caCertificate(
  [subject, keys]: readonly [string, webcrypto.CryptoKeyPair],
  [issuer, issuerKeys]: readonly [string, webcrypto.CryptoKeyPair],
): Promise<string> {
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer,
    serialNumber: '4002',
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2027-01-01T00:00:00Z'),
    signingAlgorithm: P256,
    publicKey: keys.publicKey,
    signingKey: issuerKeys.privateKey,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return `${certificate.toString('pem').trimEnd()}\n`;
}

export const newCa = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
/** The issuer of all certificates here. */
export const testCa = ['CN=test CA', caKeys] as const;

export const key = newKey('P-256');
const otherKey = newKey('P-256');
export const request = makeRequest({ key, subject: { CN: 'test' } });
export const goodPem = await certificateFor(key);
export const otherPem = await certificateFor(otherKey);
export const caPem = await certificateFor(key, { ca: true });

export const signerName = 'kubernetes.io/kube-apiserver-client';

export const approved: JsonObject = {
  type: 'Approved',
  status: 'True',
  reason: 'ByTest',
  message: 'ok',
  lastUpdateTime: '2026-01-01T00:00:00Z',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
export const denied: JsonObject = { ...approved, type: 'Denied' };

export function object(
  name: string,
  options: { uid?: string; signer?: string; conditions?: readonly JsonObject[] } = {},
) {
  const { uid = `uid-${name}`, signer = signerName, conditions = [approved] } = options;
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name,
      uid,
      resourceVersion: '1',
      annotations: { 'example.com/unknown': 'kept' },
      managedFields: [{ manager: 'test', fieldsV1: { 'f:spec': {} } }],
    },
    spec: {
      request: request.bytes.toString('base64'),
      signerName: signer,
      usages: ['client auth'],
      username: 'jane',
      groups: ['system:authenticated'],
      extra: { 'example.com/field': ['also kept'] },
    },
    status: conditions.length === 0 ? {} : { conditions },
  };
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export function recordingLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...fields } });
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }, lines };
}
