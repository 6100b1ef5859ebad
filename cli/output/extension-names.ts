/**
 * Names of extensions that core does not read, from @peculiar/x509. They are only displayed; no decision depends on them.
 * Load this file on demand: the library takes longer to load than the rest of the command line.
 */
import 'reflect-metadata';
import { Extension, Pkcs10CertificateRequest, X509Certificate } from '@peculiar/x509';

export interface NamedExtension {
  /** Dotted. */
  readonly oid: string;
  /** Absent if the library cannot read the extensions. */
  readonly critical?: boolean;
  /** `Certificate Policies`; absent if the library does not know the extension. */
  readonly name?: string;
}

/** The extensions `oids` of a request, with their names. `pem`: its CERTIFICATE REQUEST block. */
export function extensionsOfRequest(pem: string, oids: readonly string[]): readonly NamedExtension[] {
  return named(oids, () => new Pkcs10CertificateRequest(pem).extensions);
}

/** The extensions `oids` of a certificate in DER, with their names. */
export function extensionsOfCertificate(der: Uint8Array, oids: readonly string[]): readonly NamedExtension[] {
  return named(oids, () => new X509Certificate(new Uint8Array(der)).extensions);
}

/** `2.5.29.32 (Certificate Policies, critical)`. */
export function extensionText({ oid, critical, name }: NamedExtension): string {
  const notes = [...(name === undefined ? [] : [name]), ...(critical === true ? ['critical'] : [])];
  return notes.length === 0 ? oid : `${oid} (${notes.join(', ')})`;
}

function named(oids: readonly string[], read: () => readonly Extension[]): readonly NamedExtension[] {
  const known = new Map<string, NamedExtension>();
  try {
    for (const extension of read()) {
      const { type: oid, critical, constructor } = extension;
      // The library has a class for each extension that it knows.
      const name = constructor === Extension ? {} : { name: (constructor as typeof Extension).NAME };
      known.set(oid, { oid, critical, ...name });
    }
  } catch {
    // The library refuses all extensions if the content of one is invalid.
  }
  return oids.map((oid) => known.get(oid) ?? { oid });
}
