/** One request of each kind and its certificate, for all of a run: the relay looks at both, and no decision hangs on more. */
import { sign } from 'node:crypto';
import { issueCaCertificate } from '../../../core/ca/issue-ca-certificate.ts';
import { caValidity } from '../../../core/x509/ca-certificate.ts';
import { assembleCertificate, buildTbs } from '../../../core/x509/leaf-certificate.ts';
import { toPem } from '../../../core/encoding/pem.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { decodeRequest } from '../../../core/x509/certificate-request.ts';
import { serialFrom } from '../../../core/x509/validity.ts';
import { makeRequest, newKey } from '../../harness/x509/requests.ts';
import type { RequestSpec } from '../../harness/x509/requests.ts';
import { epoch } from '../runtime.ts';
import { nodeUser } from './arrivals.ts';
import type { Kind } from './arrivals.ts';

export interface Pair {
  /** In base64. */
  readonly request: string;
  readonly certificatePem: string;
  readonly usages: readonly string[];
}
export type Pairs = Readonly<Record<Kind, Pair>>;

const node = { O: ['system:nodes'], CN: nodeUser };
const kubelet = ['digital signature', 'client auth'];

export async function makePairs(): Promise<Pairs> {
  const authority = await makeAuthority();
  const pair = (usages: readonly string[], request: RequestSpec): Promise<Pair> =>
    makePair(authority, usages, { ...request, key: newKey('P-256') });
  return {
    approved: await pair(['client auth'], { subject: { O: ['testers'], CN: 'scale' } }),
    join: await pair(kubelet, { subject: node }),
    renewal: await pair(kubelet, { subject: node }),
    nodeServing: await pair(['digital signature', 'server auth'], { subject: node, sans: { dns: ['scale'] } }),
    serving: await pair(['digital signature', 'server auth'], { subject: node, sans: { dns: ['scale'] } }),
  };
}

interface Made extends Authority {
  readonly signBytes: (tbs: Uint8Array) => Uint8Array;
}

async function makeAuthority(): Promise<Made> {
  const [ca] = defaultCluster('scale', { maxTtlSeconds: 86_400 }).cas.values();
  if (ca?.kind !== 'selfSigned') throw new Error('the cluster has no CA of its own');
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
  return { name: 'ca', certificate, intermediates: [], signer, signBytes };
}

async function makePair(authority: Made, usages: readonly string[], spec: RequestSpec): Promise<Pair> {
  const { bytes } = makeRequest(spec);
  const decoded = decodeRequest(bytes);
  if (!decoded.ok) throw new Error('the request cannot be read');
  const request = decoded.value;
  const serial = serialFrom(new Uint8Array(16).fill(2));
  const tbs = buildTbs({ request, usages, serial, notBefore: epoch, notAfter: epoch + 86_400_000 }, authority);
  const leaf = assembleCertificate(tbs, authority.signBytes(tbs), authority.signer.algorithm);
  return { request: bytes.toString('base64'), certificatePem: toPem('CERTIFICATE', leaf), usages };
}
