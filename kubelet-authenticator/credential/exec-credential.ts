/**
 * client-go's credential plugin protocol: the input in KUBERNETES_EXEC_INFO, and the ExecCredential on standard output.
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
 */
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

const group = 'client.authentication.k8s.io';
const versions = ['v1', 'v1beta1'] as const;
type ExecVersion = (typeof versions)[number];

/** Only the version is read: client-go accepts an answer only in the version that it sent. */
export function decodeExecInfo(text: string | undefined): Result<ExecVersion, string> {
  if (text === undefined || text === '')
    // A manual call would print the private key to the terminal.
    return failure(
      'KUBERNETES_EXEC_INFO is not set: exec is called by client-go through a kubeconfig (users[].user.exec)',
    );
  let info: { readonly apiVersion?: unknown; readonly kind?: unknown } | null;
  try {
    info = JSON.parse(text) as typeof info;
  } catch {
    return failure('KUBERNETES_EXEC_INFO is not JSON');
  }
  if (typeof info !== 'object' || info?.kind !== 'ExecCredential')
    return failure('KUBERNETES_EXEC_INFO is not an ExecCredential');
  const version = versions.find((known) => info.apiVersion === `${group}/${known}`);
  return version === undefined
    ? failure(`KUBERNETES_EXEC_INFO has an unknown version; known are ${group}/v1 and ${group}/v1beta1`)
    : success(version);
}

interface PrintedCredential {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** client-go calls again at this moment. Until then it uses the credential, even if the certificate expires earlier. */
  readonly askAgainAt: number;
}

/** The same credential gives the same bytes, since client-go closes its connections when the answer changes. */
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
