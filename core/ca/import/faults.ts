/** Why a CA certificate is not imported: a closed list, documented in docs/ca/sources.md. */
export const importFaults = {
  NotPem: 'a file is not PEM, or holds something besides certificates',
  ExtraCertificate: 'a certificate is not on the path from the CA to the root',
  RootMissing: 'the CA is not self-signed and no root was given',
  RootNotSelfSigned: 'the root is not self-signed',
  Unreadable: 'a certificate is not X.509 version 3 in strict DER',
  SerialNumber: 'a serial number is not positive or has more than 20 octets (RFC 5280 §4.1.2.2)',
  KeyNotAccepted: 'a key is not RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519',
  SignatureAlgorithm: 'a signature uses another hash than SHA-256, SHA-384 or SHA-512',
  WrongKey: 'the certificate is not of the CA’s key',
  SubjectMismatch: 'the subject is not that of the configuration',
  NoBasicConstraints: 'a certificate has no basicConstraints',
  NotCa: 'a certificate is not of a CA (cA is not TRUE), or basicConstraints are not critical',
  NoKeyUsage: 'the certificate has no keyUsage',
  NoCertSign: 'the keyUsage of a certificate lacks keyCertSign',
  NoCrlSign: 'the keyUsage of the certificate lacks cRLSign',
  NoSubjectKeyIdentifier: 'the certificate has no subjectKeyIdentifier',
  NoAuthorityKeyIdentifier: 'the certificate does not name the key of its issuer',
  NoSubject: 'a certificate has an empty subject',
  ExtKeyUsage: 'an extKeyUsage forbids clientAuth or serverAuth below it',
  NameConstraints: 'a certificate constrains the names below it',
  PolicyConstraints: 'a certificate constrains the policies of the certificates below it',
  UnknownCriticalExtension: 'a certificate has a critical extension that must not be critical or is not judged here',
  NotYetValid: 'a certificate is not valid yet',
  Expired: 'a certificate has expired',
  PathLength: 'a pathLen permits fewer CAs than the chain and the configuration have',
  ChainTooLong: 'more than five CAs are above the certificate',
  ChainOrder: 'the chain is not in order, nearest first',
  ChainIncomplete: 'the issuer of a certificate is not among the given ones',
  SameSubject: 'two certificates of the path have one subject',
  IssuerKeyMismatch: 'the issuer has the right name and another key than the one named',
  SignatureInvalid: 'a signature does not verify',
} as const;

export type ImportFaultName = keyof typeof importFaults;

export interface ImportFault {
  readonly why: ImportFaultName;
  readonly message: string;
}
