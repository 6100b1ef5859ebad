/** The CA certificates that the sign function publishes, as PEM (docs/ca/trust.md). */
import type { CaRecord } from '../../core/ca/authority.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { CaNotInForceError } from '../../core/ports/errors.ts';
import { encodeTrustBundles } from '../../core/trust/trust-bundles.ts';
import { trustedCertificates } from '../../core/trust/trusted-certificates.ts';
import type { TrustedCertificate } from '../../core/trust/trusted-certificates.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { errorAnswer, outcomeHeader } from '../../adapters/lambda/answers.ts';
import { textAnswer } from '../../adapters/lambda/http.ts';
import type { HttpAnswer } from '../../adapters/lambda/http.ts';

export interface TrustPorts {
  readonly authority: (cluster: string, ca: string) => Promise<Authority>;
}

/**
 * For kube-apiserver's --client-ca-file: of the signers whose certificates log in there, and of no other signer, because who has a
 * certificate of one of these CAs is logged in.
 */
export async function clientBundle(cluster: ClusterConfiguration, ports: TrustPorts): Promise<HttpAnswer> {
  const clients = [...cluster.profiles.values()].filter(({ kind }) => kind.startsWith('kube-apiserver-client'));
  if (clients.length === 0)
    return errorAnswer(404, 'invalid', 'no signer of this cluster issues logins to the API server: see trust-bundles');
  const records = await authoritiesInForce(cluster, ports);
  const pem = pemOf(clients.flatMap((profile) => trustedCertificates(profile, cluster.cas, records)));
  // A client that takes an empty answer for the CAs to trust would shut everyone out.
  if (pem === '') throw new CaNotInForceError('no CA of the signers of logins is in force');
  return pemAnswer(pem);
}

/**
 * By signer, in one document: each path is a route and a permission of its own, whose number AWS limits. A signer without a CA in
 * force is left out.
 */
export async function bundlesBySigner(cluster: ClusterConfiguration, ports: TrustPorts): Promise<HttpAnswer> {
  const records = await authoritiesInForce(cluster, ports);
  const bundles = [...cluster.profiles.values()].map((profile) => ({
    signerName: profile.signerName,
    pem: pemOf(trustedCertificates(profile, cluster.cas, records)),
  }));
  return textAnswer(200, 'application/json', encodeTrustBundles(cluster.name, bundles), outcomeHeader('ok'));
}

/** One CA, whatever it is for. */
export async function caCertificate(cluster: ClusterConfiguration, ca: string, ports: TrustPorts): Promise<HttpAnswer> {
  if (!cluster.cas.has(ca)) return errorAnswer(404, 'invalid', 'no such CA');
  const { certificate } = await ports.authority(cluster.name, ca);
  return pemAnswer(pemOf([{ ca, certificate }]));
}

function pemAnswer(pem: string): HttpAnswer {
  return textAnswer(200, 'application/pem-certificate-chain', pem, outcomeHeader('ok'));
}

/** Each certificate once. */
function pemOf(trusted: readonly TrustedCertificate[]): string {
  return [...new Set(trusted.map(({ certificate }) => toPem('CERTIFICATE', certificate)))].join('');
}

/**
 * The CAs that can have issued something. A new CA may await its certificate for days; what is published about the others must not
 * wait for it. Rejects if another CA does not answer.
 */
export async function authoritiesInForce(
  cluster: ClusterConfiguration,
  { authority }: TrustPorts,
): Promise<ReadonlyMap<string, Authority & Pick<CaRecord, 'chain'>>> {
  const loaded = await Promise.all(
    [...cluster.cas.keys()].map(async (name) => {
      try {
        const loaded = await authority(cluster.name, name);
        return [[name, { ...loaded, chain: loaded.root === undefined ? [] : [loaded.root] }] as const];
      } catch (error) {
        if (error instanceof CaNotInForceError) return [];
        throw error;
      }
    }),
  );
  return new Map(loaded.flat());
}
