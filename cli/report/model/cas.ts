/** The CAs, and which parts of the cluster accept what they issue. */
import { trustOf } from '../../../core/rotation/anchors.ts';
import type { Issuer } from '../../../core/rotation/anchors.ts';
import type { Consumer } from '../../../core/rotation/consumers.ts';
import type { Deployment, RotatingCa } from '../../../core/rotation/deployment.ts';
import { certificateFacts } from '../../../core/x509/read-certificate.ts';
import { instantText } from '../../output/tofu-text.ts';
import type { HeldCertificate } from './certificates.ts';

export interface CaRow {
  readonly name: string;
  /** Why it is not in force; absent if it is. */
  readonly fault?: string;
  readonly subject?: string;
  /** Of its certificate or one above it, whichever ends first. */
  readonly notAfter?: string;
  readonly fingerprintSha256?: string;
  readonly keyId?: string;
  /** The CA that it replaces. */
  readonly replaces?: string;
  /** The signers whose profiles name it; those of its certificates where the profiles were not read. */
  readonly signerNames: readonly string[];
  /** How many holders have their latest certificate from it. Absent: not read, or not in force. */
  readonly holders?: number;
}

export interface TrustRow {
  readonly name: string;
  readonly place: string;
  /** By the name of the CA. `needed`: it does not trust the CA, and meets its certificates. */
  readonly cas: Readonly<Record<string, 'trusted' | 'not trusted' | 'needed'>>;
  /** Why it was not read. `hidden`: a file, which the API does not show. */
  readonly unread?: string;
}

export function caRows({ cas, profiles }: Deployment, held: readonly HeldCertificate[] | undefined): readonly CaRow[] {
  return cas.map(({ name, configuration, record, fault }) => {
    const issued = record === undefined ? undefined : held?.filter(({ caKeyId }) => caKeyId === record.keyId);
    const named = profiles.filter(({ ca }) => ca === name).map(({ signerName }) => signerName);
    const seen = profiles.length > 0 ? [] : (issued ?? []).map(({ signerName }) => signerName);
    return {
      name,
      ...(record === undefined ? { fault: fault ?? 'it is not in force' } : certificateOf(record)),
      ...(configuration?.replaces === undefined ? {} : { replaces: configuration.replaces }),
      signerNames: [...new Set([...named, ...seen])].toSorted(),
      ...(issued === undefined ? {} : { holders: issued.length }),
    };
  });
}

function certificateOf({ keyId, certificate, chain }: NonNullable<RotatingCa['record']>): Partial<CaRow> {
  const { subject, fingerprintSha256 } = certificateFacts(certificate);
  // No verifier goes past the end of a certificate on its path.
  const end = Math.min(...[certificate, ...chain].map((der) => certificateFacts(der).notAfter));
  return { subject, notAfter: instantText(end), fingerprintSha256, keyId };
}

/** The consumers that trust one of the CAs, or should, or may: webhooks of others are left out. */
export function trustRows({ cas, profiles }: Deployment, consumers: readonly Consumer[]): readonly TrustRow[] {
  const inForce = cas.flatMap(({ name, record }) => (record === undefined ? [] : [{ name, record }]));
  return consumers.flatMap((consumer) => {
    const { name, place, bundle, unread, concern } = consumer;
    const concerned = inForce.filter((ca) =>
      profiles.some(
        (profile) =>
          profile.ca === ca.name &&
          typeof concern === 'object' &&
          ('kinds' in concern ? concern.kinds.includes(profile.kind) : concern.signerName === profile.signerName),
      ),
    );
    if (bundle === undefined) {
      if (unread === undefined && concerned.length === 0) return [];
      return [{ name, place, cas: {}, unread: unread ?? 'hidden' }];
    }
    const trust = inForce.map(({ name: ca, record }) => {
      const { trusted } = trustOf(bundle, record satisfies Issuer, []);
      const needed = concerned.some((each) => each.name === ca);
      return [ca, trusted ? 'trusted' : needed ? 'needed' : 'not trusted'] as const;
    });
    if (trust.every(([, state]) => state === 'not trusted')) return [];
    return [{ name, place, cas: Object.fromEntries(trust) }];
  });
}
