/** CAs and consumers of a rotation, with real certificates. */
import { randomBytes } from 'node:crypto';
import { temporaryCa } from '../../../../adapters/embedded/authority.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { Consumer } from '../../../../core/rotation/consumers.ts';
import { deploymentOf } from '../../../../core/rotation/deployment.ts';
import type { Deployment, RotatingCa } from '../../../../core/rotation/deployment.ts';
import type { Leaves } from '../../../../core/rotation/leaves.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';

export const now = Date.parse('2026-06-01T12:00:00Z');

export interface World {
  readonly authorities: Map<string, Authority>;
  /** `cas`, `profiles`: flow maps of countersign.yaml. `asked`: a CA that is configured no more. */
  deploy(cas: string, profiles: string, asked?: string): Promise<Deployment>;
  readonly pem: (...names: string[]) => string;
}

/** Makes each CA of `cas` at its first deployment, those of `awaited` never. */
export function createWorld(awaited: readonly string[] = []): World {
  const authorities = new Map<string, Authority>();
  const chains = new Map<string, readonly Uint8Array[]>();
  return {
    authorities,
    async deploy(cas, profiles, asked = '') {
      const text = `version: 1\nclusters: {prod: {cas: ${cas}, profiles: ${profiles}}}\n`;
      const parsed = parseConfiguration(text, 'countersign.yaml');
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
      const cluster = parsed.value.configuration.clusters.get('prod')!;
      for (const ca of cluster.cas.values()) {
        if (awaited.includes(ca.name) || authorities.has(ca.name)) continue;
        const issuer = ca.kind === 'issued' ? authorities.get(ca.issuedBy) : undefined;
        authorities.set(ca.name, await temporaryCa(ca, { now, randomBytes }, issuer));
        chains.set(ca.name, issuer === undefined ? [] : [issuer.certificate]);
      }
      return deploymentOf(cluster, asked, async (name) => {
        const made = authorities.get(name);
        if (made === undefined) return { fault: `there is no CA ${name} yet` };
        const { signer, certificate } = made;
        return { record: { keyId: signer.keyId, certificate, chain: chains.get(name) ?? [] } };
      });
    },
    pem: (...names) => names.map((name) => toPem('CERTIFICATE', authorities.get(name)!.certificate)).join(''),
  };
}

export const noLeaves: Leaves = { certificates: 0, signers: [], holders: [], more: false, revoked: 0 };

/** Certificates of one signer. */
export function leavesOf(signerName: string, certificates = 1): Leaves {
  const last = now + 1_000;
  return { ...noLeaves, certificates, last, signers: [{ signerName, certificates, last }] };
}

export function clientCa(bundle: string): Consumer {
  return {
    name: 'kube-apiserver --client-ca-file',
    place: 'ConfigMap',
    bundle,
    concern: { kinds: ['kube-apiserver-client', 'kube-apiserver-client-kubelet'] },
    change: '',
  };
}

export function caOf({ cas }: Deployment, name: string): RotatingCa {
  const found = cas.find((ca) => ca.name === name);
  if (found === undefined) throw new Error(`no CA ${name}`);
  return found;
}
