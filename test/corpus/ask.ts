/** Puts one CertificateSigningRequest object to our own signer, over the embedded store and key. */
import { randomBytes } from 'node:crypto';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { embeddedSigner } from '../../adapters/embedded/signer.ts';
import { defaultCluster } from '../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { issue } from '../../core/issue.ts';
import { decodeRequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import { refusalMessage } from '../../core/outcome/outcome.ts';
import type { RefusalCode } from '../../core/outcome/outcome.ts';
import type { ProfileKind } from '../../core/policy/profile.ts';
import type { CorpusAuthority } from './authority.ts';
import { noLocks } from '../harness/kubernetes/no-locks.ts';

export type OurAnswer =
  | { readonly kind: 'issued'; readonly certificate: Buffer; readonly certificatePem: string }
  | { readonly kind: 'refused'; readonly codes: readonly RefusalCode[]; readonly message: string }
  | { readonly kind: 'left alone'; readonly why: string };

/** A signer in one cluster, asked with the clock the caller sets. Each answer is final for its UID, as in earnest. */
export interface OurSigner {
  ask(object: unknown, nowSeconds: number): Promise<OurAnswer>;
  close(): void;
}

export interface SignerOptions {
  /** As the reference's --cluster-signing-duration. */
  readonly maxTtlSeconds: number;
  /** All of kubernetes.io by default. */
  readonly kinds?: readonly ProfileKind[];
  readonly allowReserved?: readonly string[];
  /** Of kubelet-serving. */
  readonly allowReservedSans?: readonly string[];
}

export function ourSigner(authority: CorpusAuthority, options: SignerOptions): OurSigner {
  const { ledger, close } = openEmbeddedLedger(':memory:');
  const signer = embeddedSigner(authority.key);
  const ours = { name: 'ca', certificate: authority.certificate, intermediates: [], signer };
  const cluster = clusterOf(options);
  return {
    close,
    async ask(json, nowSeconds) {
      const decoded = decodeRequestObject(json);
      if (!decoded.ok && decoded.problem.tooLarge === true)
        return { kind: 'refused', codes: ['RequestTooLarge'], message: decoded.problem.message };
      if (!decoded.ok) throw new Error(`not an object of the API server's: ${decoded.problem.message}`);
      const outcome = await issue(decoded.value, cluster, {
        ledger,
        locks: noLocks,
        authority: () => Promise.resolve(ours),
        now: () => nowSeconds * 1000,
        randomBytes: (count) => randomBytes(count),
      });
      switch (outcome.kind) {
        case 'issued':
          return {
            kind: 'issued',
            certificate: leafOf(outcome.certificatePem),
            certificatePem: outcome.certificatePem,
          };
        case 'refused':
          return {
            kind: 'refused',
            codes: outcome.violations.map(({ code }) => code),
            message: refusalMessage(outcome.violations),
          };
        case 'ignored':
          return { kind: 'left alone', why: outcome.why };
        case 'invalid':
        case 'busy':
          throw new Error(`no decision: ${JSON.stringify(outcome)}`);
      }
    },
  };
}

/** What `countersign.yaml` says when it names the signers and nothing else. */
export function clusterOf({
  kinds,
  maxTtlSeconds,
  allowReserved = [],
  allowReservedSans = [],
}: SignerOptions): ClusterConfiguration {
  const cluster = defaultCluster('oracle');
  const profiles = [...cluster.profiles].filter(([, { kind }]) => kinds?.includes(kind) ?? true);
  return {
    ...cluster,
    profiles: new Map(
      profiles.map(([name, profile]) => [name, { ...profile, maxTtlSeconds, allowReserved, allowReservedSans }]),
    ),
  };
}

/** The only block: a self-signed CA is the root, and the root is never sent along. */
export function leafOf(pem: string): Buffer {
  const [, base64 = '', ...more] = pem.trim().split(/-----(?:BEGIN|END) CERTIFICATE-----/);
  if (more.length !== 1) throw new Error(`not one certificate: ${pem}`);
  return Buffer.from(base64, 'base64');
}
