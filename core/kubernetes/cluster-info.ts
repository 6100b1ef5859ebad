/**
 * Reads `kube-public/cluster-info`: the address of the API server and its CA. The ConfigMap is public, and an attacker on the
 * network can change it in transit, so nothing in it is trusted before the token's signature and the pins are verified
 * (kubernetes cmd/kubeadm/app/discovery/token, util/pubkeypin).
 */
import { readCertificate } from '../x509/read-certificate.ts';
import { sha256 } from '../encoding/digest.ts';
import { readBoundedDocument } from '../encoding/bounded-document.ts';
import { decodePem, pemBlocks, toPem } from '../encoding/pem.ts';
import { isObject, objectOf } from '../encoding/json-object.ts';
import type { JsonObject } from '../encoding/json-object.ts';
import { quoted } from '../outcome/printable-text.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

export interface ClusterEntry {
  readonly server: string;
  /** Empty if the entry has no certificate-authority-data. */
  readonly caPem: string;
  /** certificate-authority: a local file with the CA, so it is only used if the kubeconfig is a local file too. */
  readonly caFile?: string;
}

export interface CaCertificate {
  /** Encoded from the DER that was hashed, so that TLS trusts exactly this certificate and no other text of the bundle. */
  readonly pem: string;
  readonly subject: string;
  /** `sha256:<hex>` of the SubjectPublicKeyInfo, as in the printed join command. */
  readonly pin: string;
}

/** Accepts `sha256:<hex>` in upper or lower case, as kubeadm does. Returns it in lower case. */
export function parsePins(texts: readonly string[]): Result<readonly string[], string> {
  const pins: string[] = [];
  for (const text of texts) {
    const [format = '', hex = '', ...more] = text.split(':');
    if (more.length > 0 || !text.includes(':'))
      return pinProblem('invalid hash, expected "format:hex-value". Known format(s) are: sha256');
    if (format.toLowerCase() !== 'sha256')
      return pinProblem(`unknown hash format ${quoted(format)}. Known format(s) are: sha256`);
    if (hex.length !== 64)
      return pinProblem(
        `invalid hash ${quoted(text)}, expected a 32 byte SHA-256 hash, found ${Math.floor(hex.length / 2)} bytes`,
      );
    if (!/^[0-9a-f]*$/i.test(hex)) return pinProblem(`invalid hash ${quoted(text)}, could not decode SHA-256 from hex`);
    pins.push(`sha256:${hex.toLowerCase()}`);
  }
  return success(pins);
}

function pinProblem(problem: string): Result<never, string> {
  return failure(`invalid discovery token CA certificate hash: ${problem}`);
}

/** The cluster without a name in a kubeconfig, otherwise the cluster of its current context, as in kubeadm. */
export function readClusterEntry(kubeconfig: string): Result<ClusterEntry, string> {
  const document = readBoundedDocument(kubeconfig);
  if (!document.ok) return document;
  const { clusters, contexts, 'current-context': current = '' } = objectOf(document.value);
  const named = (list: unknown, name: unknown): JsonObject | undefined =>
    Array.isArray(list) ? list.map(objectOf).find((entry) => (entry['name'] ?? '') === name) : undefined;
  const context = objectOf(named(contexts, current ?? '')?.['context']);
  const entry = named(clusters, '') ?? named(clusters, context['cluster']);
  const cluster = entry?.['cluster'];
  if (!isObject(cluster)) return failure('it names no cluster: neither an unnamed one nor a current-context');
  const { server } = cluster;
  if (typeof server !== 'string' || !isHttps(server)) return failure('its server is no https:// address');
  // With it, the client would accept any server.
  if (cluster['insecure-skip-tls-verify'] === true) return failure('it sets insecure-skip-tls-verify');
  const { 'certificate-authority-data': data, 'certificate-authority': file } = cluster;
  return success({
    server,
    caPem: typeof data === 'string' ? Buffer.from(data, 'base64').toString('utf8') : '',
    ...(typeof file === 'string' && file !== '' ? { caFile: file } : {}),
  });
}

/**
 * The concatenated CAs of an untrusted kubeconfig; empty if the kubeconfig holds no CA. The text is searched, not parsed: kubeadm and kubectl
 * write each CA as one line of base64.
 */
export function authorityData(kubeconfig: string): string {
  const found = kubeconfig.matchAll(/certificate-authority-data["']?[ \t]*:[ \t]*["']?([A-Za-z0-9+/=]+)/g);
  return [...found].map(([, data = '']) => Buffer.from(data, 'base64').toString('utf8')).join('\n');
}

export function caCertificates(bundle: string): Result<readonly CaCertificate[], string> {
  const blocks = pemBlocks(bundle, 'CERTIFICATE');
  if (blocks.length === 0) return failure('data does not contain any valid RSA or ECDSA certificates');
  const found: CaCertificate[] = [];
  for (const text of blocks) {
    const decoded = decodePem(Buffer.from(text), ['CERTIFICATE']);
    if (!decoded.ok) return failure(`a certificate ${decoded.problem}`);
    const der = decoded.value[0]?.content ?? new Uint8Array();
    const read = readCertificate(der);
    if (!read.ok) return failure(`a certificate: ${read.problem}`);
    const { subject, spki } = read.value;
    found.push({ pem: toPem('CERTIFICATE', der), subject, pin: spkiPin(spki) });
  }
  return success(found);
}

/** The hash of RFC 7469 §2.4 in kubeadm's form. A CA that is renewed with the same key keeps its pin. */
export function spkiPin(spki: Uint8Array): string {
  return `sha256:${sha256(spki).toString('hex')}`;
}

/**
 * Only the pinned certificates. A holder of the token can sign a bundle that contains the pinned CA and their own CA; the second
 * must not become trusted.
 */
export function pinnedOf(
  certificates: readonly CaCertificate[],
  pins: readonly string[],
): Result<readonly CaCertificate[], string> {
  const pinned = certificates.filter(({ pin }) => pins.includes(pin));
  if (pinned.length > 0) return success(pinned);
  const seen = certificates.map(({ pin }) => pin).join(', ');
  return failure(`cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "${seen}" are pinned`);
}

function isHttps(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'https:';
}
