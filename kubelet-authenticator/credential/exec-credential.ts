/**
 * The two ends of client-go's credential plugin protocol: what it puts into KUBERNETES_EXEC_INFO, and what it reads from
 * standard output. https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
 */
const group = 'client.authentication.k8s.io';
const versions = ['v1', 'v1beta1'] as const;
export type ExecVersion = (typeof versions)[number];

export type DecodedExecInfo =
  { readonly ok: true; readonly version: ExecVersion } | { readonly ok: false; readonly message: string };

/** Of all it says only the version matters: client-go takes an answer in no other than its own. */
export function decodeExecInfo(text: string | undefined): DecodedExecInfo {
  if (text === undefined || text === '')
    // Who tries this in a terminal would have the private key on the screen.
    return {
      ok: false,
      message: 'KUBERNETES_EXEC_INFO is not set: this is for a kubeconfig to call (users[].user.exec)',
    };
  let info: { readonly apiVersion?: unknown; readonly kind?: unknown } | null;
  try {
    info = JSON.parse(text) as typeof info;
  } catch {
    return { ok: false, message: 'KUBERNETES_EXEC_INFO is not JSON' };
  }
  if (typeof info !== 'object' || info?.kind !== 'ExecCredential')
    return { ok: false, message: 'KUBERNETES_EXEC_INFO is not an ExecCredential' };
  const version = versions.find((known) => info.apiVersion === `${group}/${known}`);
  return version === undefined
    ? { ok: false, message: `KUBERNETES_EXEC_INFO is of no known version (${group}/v1, ${group}/v1beta1)` }
    : { ok: true, version };
}

export interface PrintedCredential {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** When client-go is to ask again. It uses the credential until then whatever the certificate itself says. */
  readonly askAgainAt: number;
}

/** The same credential gives the same bytes: client-go cuts no connection as long as nothing changed. */
export function encodeExecCredential(version: ExecVersion, credential: PrintedCredential): string {
  const { certificatePem, keyPem, askAgainAt } = credential;
  return `${JSON.stringify({
    apiVersion: `${group}/${version}`,
    kind: 'ExecCredential',
    status: {
      // RFC 3339 in whole seconds, as metav1.Time writes and reads it.
      expirationTimestamp: `${new Date(askAgainAt).toISOString().slice(0, 19)}Z`,
      clientCertificateData: certificatePem,
      clientKeyData: keyPem,
    },
  })}\n`;
}
