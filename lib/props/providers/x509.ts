// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Which machines with a certificate of a PKI may join. */
export interface X509Attestation {
  /**
   * Root certificates (PEM) by a name that you choose. The name is part of the identity of each machine, so never
   * change it. Several certificates under one name are one root that is being replaced: each of them may name every
   * machine of this root.
   */
  readonly roots: Readonly<Record<string, readonly string[]>>;

  /**
   * Intermediate CA certificates (PEM), besides those that nodes send.
   *
   * @default - none
   */
  readonly intermediates?: readonly string[];

  /**
   * Which certificates are machines.
   */
  readonly rules: readonly X509Rule[];
}

/** Which certificates are machines, and what these are called. */
export interface X509Rule {
  /**
   * The name of the root to which the chain of the certificate must lead: a key of `roots`.
   */
  readonly root: string;

  /**
   * The URI in the certificate (subjectAltName), with parts in braces: `spiffe://prod.example/node/{node}`. A part
   * is one path segment. Exactly one of `uri`, `cn` and `dns` is required; it is the identity of the machine.
   *
   * @default - none
   */
  readonly uri?: string;

  /**
   * The common name of the subject: `{node}.prod.example`. A part is one label, without dots.
   *
   * @default - none
   */
  readonly cn?: string;

  /**
   * A DNS name in the certificate (subjectAltName), in lower case. A part is one label, without dots.
   *
   * @default - none
   */
  readonly dns?: string;

  /**
   * What the machine may be called, any of them. A template with the parts of the name, such as `{node}`; or
   * `pattern:<name with *>`: any such name, first come, first served.
   */
  readonly nodeName: readonly string[];

  /**
   * Whether the IP addresses in the certificate belong to the machine, so that a serving certificate may hold them.
   *
   * @default - false
   */
  readonly addresses?: boolean;

  /**
   * Whether the DNS names in the certificate belong to the machine. Wildcards never do.
   *
   * @default - false
   */
  readonly dnsNames?: boolean;

  /**
   * The extended key usage that the certificate must have: the name of a usage (`client auth`, `server auth` …) or
   * an OID. `unchecked`: none, for certificates without this extension.
   *
   * @default - client auth
   */
  readonly extKeyUsage?: string;
}
