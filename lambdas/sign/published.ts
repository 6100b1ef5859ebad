/** What the sign function publishes of revocations: a CA's CRL, and the list for relays, which the API server asks. */
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { CrlStore } from '../../core/ports/revocations.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { encodeRevokedList } from '../../core/revocation/revoked-list.ts';
import { errorAnswer, outcomeHeader } from '../../adapters/lambda/answers.ts';
import { bytesAnswer, textAnswer } from '../../adapters/lambda/http.ts';
import type { HttpAnswer, HttpRequest } from '../../adapters/lambda/http.ts';
import { authoritiesInForce } from './trust.ts';

export interface PublishedPorts {
  readonly crls: (cluster: string) => CrlStore;
  readonly authority: (cluster: string, ca: string) => Promise<Authority>;
}

/** The CRL in DER (RFC 5280 §4.2.1.13, RFC 2585 §4.2). */
export async function crl(cluster: ClusterConfiguration, ca: string, ports: PublishedPorts): Promise<HttpAnswer> {
  if (!cluster.cas.has(ca)) return errorAnswer(404, 'invalid', 'no such CA');
  const { signer } = await ports.authority(cluster.name, ca);
  const stored = await ports.crls(cluster.name).findCrl(signer.keyId);
  if (stored === undefined) return errorAnswer(404, 'invalid', 'no CRL was issued yet');
  if (stored.der === undefined)
    return errorAnswer(404, 'invalid', 'the certificate of this CA does not permit CRLs (keyUsage without cRLSign)');
  return bytesAnswer(200, 'application/pkix-crl', stored.der, outcomeHeader('ok'));
}

/**
 * The unexpired revoked certificates of all CAs. Its ETag are the numbers of the CRLs, so that a relay that asks every half
 * minute costs one small read for each CA.
 */
export async function revokedList(
  cluster: ClusterConfiguration,
  { headers }: Pick<HttpRequest, 'headers'>,
  ports: PublishedPorts,
): Promise<HttpAnswer> {
  const crls = ports.crls(cluster.name);
  const keys = [...(await authoritiesInForce(cluster, ports)).values()].map(({ signer }) => signer.keyId);
  const asked = headers.get('if-none-match');
  if (asked !== undefined) {
    const etag = etagOf(await Promise.all(keys.map(async (keyId) => (await crls.findHead(keyId))?.number)));
    if (asked === etag) return textAnswer(304, 'application/json', '', { ...outcomeHeader('ok'), etag });
  }
  const stored = await Promise.all(keys.map((keyId) => crls.findCrl(keyId)));
  const revoked = stored.flatMap((each) => each?.revoked ?? []);
  const etag = etagOf(stored.map((each) => each?.number));
  return textAnswer(200, 'application/json', encodeRevokedList(cluster.name, revoked), {
    ...outcomeHeader('ok'),
    etag,
  });
}

function etagOf(numbers: readonly (number | undefined)[]): string {
  return `"${numbers.map((number) => number ?? 0).join('-')}"`;
}
