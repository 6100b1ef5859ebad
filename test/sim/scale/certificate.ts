/** One request and its certificate for all requests of a run: the relay looks at both, and no decision hangs on more. */
import { sign } from 'node:crypto';
import { caValidity, issueCaCertificate } from '../../../core/ca-certificate.ts';
import { assembleCertificate, buildTbs, toPem } from '../../../core/certificate.ts';
import type { Authority } from '../../../core/certificate.ts';
import { defaultCluster } from '../../../core/configuration.ts';
import { decodeRequest } from '../../../core/csr.ts';
import { serialFrom } from '../../../core/lifetime.ts';
import { makeRequest, newKey } from '../../harness/requests.ts';
import { epoch } from '../stage.ts';

export interface Pair {
  /** In base64. */
  readonly request: string;
  readonly certificatePem: string;
}

export async function makePair(): Promise<Pair> {
  const { bytes } = makeRequest({ key: newKey('P-256'), subject: { O: ['testers'], CN: 'scale' } });
  const decoded = decodeRequest(bytes);
  if (!decoded.ok) throw new Error('the request cannot be read');
  const [ca] = defaultCluster('scale', { maxTtlSeconds: 86_400 }).cas.values();
  if (ca === undefined) throw new Error('the cluster has no CA');
  const { privateKey, spki } = newKey('P-256');
  const signBytes = (tbs: Uint8Array): Uint8Array => new Uint8Array(sign('sha256', tbs, privateKey));
  const signer = {
    keyId: 'scale',
    algorithm: 'ECDSA_SHA_256',
    sign: async (tbs: Uint8Array) => ({ bytes: signBytes(tbs) }),
  } as const;
  const certificate = await issueCaCertificate(
    {
      subject: ca.subject,
      spki,
      serial: serialFrom(new Uint8Array(16).fill(1)),
      ...caValidity(epoch - 86_400_000, ca.validitySeconds),
      pathLength: ca.pathLen,
    },
    signer,
  );
  const authority: Authority = { name: 'ca', certificate, intermediates: [], signer };
  const tbs = buildTbs(
    {
      request: decoded.request,
      usages: ['client auth'],
      serial: serialFrom(new Uint8Array(16).fill(2)),
      notBefore: epoch,
      notAfter: epoch + 86_400_000,
    },
    authority,
  );
  const leaf = assembleCertificate(tbs, signBytes(tbs), signer.algorithm);
  return { request: bytes.toString('base64'), certificatePem: toPem('CERTIFICATE', leaf) };
}
