/**
 * Does anybody but the relay answer for nodes' client certificates? Where kube-controller-manager's flags cannot be seen, a
 * request that no signer may sign shows who looks at approved ones: whoever does marks it Failed.
 *
 * Nobody is named on it (the API server does not keep who wrote a condition of a request), but the words tell. The request
 * breaks two rules: the in-tree signer stops at the first, ours names all.
 *
 * Harmless by construction: neither common name nor organization are a node's, the key is forgotten before the request is
 * sent, and the request is deleted at the end.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
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
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import type { SeenController } from './controller-manager.ts';
import { expected, listOf, objectOf, textOf } from './object-answers.ts';
import type { Cluster } from './object-answers.ts';

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
/** The in-tree signer answers within a second; what is slower than this is not running. */
const waitMilliseconds = 10_000;
const pollMilliseconds = 250;
const rulesBroken = [
  'subject organization is not system:nodes',
  'subject common name does not begin with system:node:',
];

/** `suffix` makes the name unique. */
export async function probeSigner({ api, signal }: Cluster, suffix: string): Promise<SeenController> {
  const name = `countersign-probe-${suffix}`;
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(unsignableRequest(name)).toString('base64'),
      signerName,
      usages: ['digital signature', 'client auth'],
      expirationSeconds: 600,
    },
  };
  const created = expected(await api.create(path, object, signal), 'the probe could not be made');
  try {
    const condition = {
      type: 'Approved',
      status: 'True',
      reason: 'CountersignProbe',
      message: 'approved by countersign cluster harden --probe, to see who would sign; it must not be signed',
    };
    const approved = await api.replace(
      `${path}/${name}/approval`,
      { ...created, status: { conditions: [condition] } },
      signal,
    );
    // A relay that approves or denies may have been faster: then nobody can be asked in this way.
    if (!approved.ok)
      return { state: 'not seen', seen: [`the probe was answered before it could be approved: ${approved.message}`] };

    for (let waited = 0; waited < waitMilliseconds; waited += pollMilliseconds) {
      await sleep(pollMilliseconds);
      const answer = answerTo(expected(await api.get(`${path}/${name}`, signal), 'the probe'));
      if (answer === undefined) continue;
      return rulesBroken.every((rule) => answer.includes(rule))
        ? { state: 'not seen', seen: ['the relay answered the probe, before anybody else would have'] }
        : {
            state: 'on',
            seen: [`an approved request for ${signerName} was answered, and not by the relay: ${printable(answer)}`],
          };
    }
    return {
      state: 'off',
      seen: [`nobody answered an approved request for ${signerName} in ${waitMilliseconds / 1_000} s`],
    };
  } finally {
    // Without `expected`: what is left over is deleted by the cluster's own cleaner after an hour.
    await api.remove(`${path}/${name}`, {}, signal).catch(() => {});
  }
}

/** The words of whoever answered; undefined while nobody has. */
function answerTo(request: JsonObject): string | undefined {
  const status = objectOf(request['status']);
  if (textOf(status['certificate']) !== '') return 'it was signed';
  const failed = listOf(status['conditions']).find(({ type }) => type === 'Failed');
  return failed === undefined ? undefined : textOf(failed['message']);
}

/** PKCS #10 (RFC 2986 §4) of a new key with nothing but a common name. */
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
