/**
 * The usages that a CertificateSigningRequest can contain, and what each becomes in the certificate. No other usage is signed.
 * Source: the KeyUsage constants of k8s.io/api/certificates/v1, and the in-tree signer's keyUsageDict and
 * extKeyUsageDict (pkg/controller/certificates/authority/policies.go).
 */

/** A bit of the KeyUsage BIT STRING, counted from the first (RFC 5280 §4.2.1.3), or an ExtKeyUsage OID (§4.2.1.12). */
export type UsageMeaning = { readonly keyUsageBit: number } | { readonly extKeyUsage: string };

/**
 * Extended usages are in their order in certificates (the order of Go's ExtKeyUsage constants):
 * Any, server, client, code signing, email, ipsec ×3, time stamping, OCSP, msSGC, nsSGC.
 */
export const usageTable = {
  signing: { keyUsageBit: 0 }, // an older name of digital signature
  'digital signature': { keyUsageBit: 0 },
  'content commitment': { keyUsageBit: 1 },
  'key encipherment': { keyUsageBit: 2 },
  'data encipherment': { keyUsageBit: 3 },
  'key agreement': { keyUsageBit: 4 },
  'cert sign': { keyUsageBit: 5 },
  'crl sign': { keyUsageBit: 6 },
  'encipher only': { keyUsageBit: 7 },
  'decipher only': { keyUsageBit: 8 },
  any: { extKeyUsage: '2.5.29.37.0' },
  'server auth': { extKeyUsage: '1.3.6.1.5.5.7.3.1' },
  'client auth': { extKeyUsage: '1.3.6.1.5.5.7.3.2' },
  'code signing': { extKeyUsage: '1.3.6.1.5.5.7.3.3' },
  'email protection': { extKeyUsage: '1.3.6.1.5.5.7.3.4' },
  's/mime': { extKeyUsage: '1.3.6.1.5.5.7.3.4' }, // the same purpose under another name
  'ipsec end system': { extKeyUsage: '1.3.6.1.5.5.7.3.5' },
  'ipsec tunnel': { extKeyUsage: '1.3.6.1.5.5.7.3.6' },
  'ipsec user': { extKeyUsage: '1.3.6.1.5.5.7.3.7' },
  timestamping: { extKeyUsage: '1.3.6.1.5.5.7.3.8' },
  'ocsp signing': { extKeyUsage: '1.3.6.1.5.5.7.3.9' },
  'microsoft sgc': { extKeyUsage: '1.3.6.1.4.1.311.10.3.3' },
  'netscape sgc': { extKeyUsage: '2.16.840.1.113730.4.1' },
} as const satisfies Readonly<Record<string, UsageMeaning>>;

export type Usage = keyof typeof usageTable;

/** Every usage, in table order. */
export const knownUsages = Object.keys(usageTable) as readonly Usage[];

export function isKnownUsage(usage: string): usage is Usage {
  // Own keys only: `constructor` and `__proto__` are not usages.
  return Object.hasOwn(usageTable, usage);
}

/** Whether the usage becomes an ExtKeyUsage, which limits the purposes of the certificate. */
export function isExtendedUsage(usage: string): boolean {
  return isKnownUsage(usage) && 'extKeyUsage' in usageTable[usage];
}
