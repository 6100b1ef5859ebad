/**
 * Finds out whether a signer other than the relay answers requests for nodes' client certificates, for clusters that do not show
 * the flags of kube-controller-manager. It creates and approves a request that no signer may sign; the active signer marks it Failed.
 *
 * The API server does not record which client wrote a condition, but the message shows it: the request breaks two rules, the
 * in-tree signer reports the first, and the relay reports both.
 *
 * The probe is harmless: neither the common name nor the organization is a node's, the key is discarded before the request
 * is sent, and the request is deleted at the end.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import type { V1CertificateSigningRequest } from '@kubernetes/client-node';
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import {
  bitString,
  explicit,
  integer,
  objectIdentifier,
  sequence,
  setOf,
  utf8String,
} from '../../core/encoding/der-writer.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import type { SeenController } from './controller-manager.ts';
import { failIfRefused } from './object-answers.ts';

const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
/** The in-tree signer answers within a second. */
const waitMilliseconds = 10_000;
const pollMilliseconds = 250;
const rulesBroken = [
  'subject organization is not system:nodes',
  'subject common name does not begin with system:node:',
];

/** `suffix` makes the name unique; `sleep` waits for some milliseconds. */
export async function probeSigner(
  { certificates }: ClusterClients,
  suffix: string,
  sleep: (milliseconds: number) => Promise<unknown>,
): Promise<SeenController> {
  const name = `countersign-probe-${suffix}`;
  const spec = {
    request: Buffer.from(unsignableRequest(name)).toString('base64'),
    signerName,
    usages: ['digital signature', 'client auth'],
    expirationSeconds: 600,
  };
  const created = await failIfRefused(
    certificates.createCertificateSigningRequest({ body: { metadata: { name }, spec } }),
    'the probe could not be created',
  );
  try {
    const condition = {
      type: 'Approved',
      status: 'True',
      reason: 'CountersignProbe',
      message: 'approved by countersign cluster harden --probe, to see who would sign; it must not be signed',
    };
    try {
      created.status = { conditions: [condition] };
      await certificates.replaceCertificateSigningRequestApproval({ name, body: created });
    } catch (error) {
      // A relay that approves or denies may have been faster. Then the probe shows nothing about other signers.
      if (error instanceof ApiRefused)
        return { state: 'not seen', seen: [`the probe was answered before it could be approved: ${error.message}`] };
      throw error;
    }
    for (let waited = 0; waited < waitMilliseconds; waited += pollMilliseconds) {
      await sleep(pollMilliseconds);
      const request = await failIfRefused(certificates.readCertificateSigningRequest({ name }), 'the probe');
      const answer = signerAnswer(request);
      if (answer !== undefined) return stateOf(answer);
    }
    return {
      state: 'off',
      seen: [`no signer answered an approved request for ${signerName} in ${waitMilliseconds / 1_000} s`],
    };
  } finally {
    // If this fails, kube-controller-manager's csrcleaner deletes the request after an hour.
    await certificates.deleteCertificateSigningRequest({ name }).catch(() => {});
  }
}

function stateOf(answer: string): SeenController {
  if (rulesBroken.every((rule) => answer.includes(rule)))
    return { state: 'not seen', seen: ['the relay answered the probe before another signer could'] };
  const seen = `a signer other than the relay answered an approved request for ${signerName}: ${printable(answer)}`;
  return { state: 'on', seen: [seen] };
}

function signerAnswer({ status }: V1CertificateSigningRequest): string | undefined {
  if (status?.certificate) return 'it was signed';
  const failed = (status?.conditions ?? []).find(({ type }) => type === 'Failed');
  return failed === undefined ? undefined : (failed.message ?? '');
}

/** PKCS #10 (RFC 2986 §4) of a new key, with only a common name. */
function unsignableRequest(commonName: string): Buffer {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const attribute = sequence(objectIdentifier('2.5.4.3'), utf8String(commonName));
  const info = sequence(
    integer(0),
    sequence(setOf(attribute)),
    publicKey.export({ type: 'spki', format: 'der' }),
    explicit(0, new Uint8Array()), // no attributes
  );
  const signature = sign('sha256', info, privateKey);
  const ecdsaWithSha256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));
  const der = sequence(info, ecdsaWithSha256, bitString(signature));
  return Buffer.from(toPem('CERTIFICATE REQUEST', der));
}
