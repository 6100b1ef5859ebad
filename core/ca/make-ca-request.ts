/** Makes the request of `countersign ca csr`, and has a second reader check it before it leaves the process. */
import { algorithmFault, publicKeyOf } from './authority.ts';
import type { CaKey, LoadedCa } from './authority.ts';
import type { ImportedCa } from '../configuration/model/cluster.ts';
import { success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { buildCaRequest } from './ca-request.ts';
import { assembleCertificate } from '../x509/leaf-certificate.ts';

type Fault = Extract<LoadedCa, { ok: false }>['problem'];

/** DER. Throws if the key does not answer, or if a reader finds a difference to the configuration. */
export async function makeCaRequest(ca: ImportedCa, key: CaKey): Promise<Result<Uint8Array, Fault>> {
  const publicKey = await publicKeyOf(ca, key);
  if (!publicKey.ok) return publicKey;
  const { spki, algorithms } = publicKey.value;
  const wrongAlgorithm = algorithmFault(ca, algorithms);
  if (wrongAlgorithm !== undefined) return wrongAlgorithm;
  const template = { subject: ca.subject, spki, pathLength: ca.pathLen };
  const signer = key.signer(ca.signatureAlgorithm);
  const info = buildCaRequest(template);
  const { bytes: signature } = await signer.sign(info);
  // CertificationRequest has the structure of Certificate: what is signed, the algorithm, the signature.
  const request = assembleCertificate(info, signature, signer.algorithm);
  const { requestDifferences } = await import('./second-reader.ts');
  const differences = await requestDifferences(request, template);
  if (differences.length > 0) throw new Error(`the new request is not usable: ${differences.join('; ')}`);
  return success(request);
}
