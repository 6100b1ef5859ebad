// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Which machines with a TPM may join. */
export interface TpmAttestation {
  /**
   * Root certificates (PEM) of endorsement keys: of TPM manufacturers, or your own. An endorsement key without a
   * certificate under one of them is refused, unless `endorsementKeys` names it.
   *
   * @default - none
   */
  readonly roots?: readonly string[];

  /**
   * Intermediate CA certificates (PEM) between endorsement key certificates and `roots`. Certificates in evidence
   * are not used as such.
   *
   * @default - none
   */
  readonly intermediates?: readonly string[];

  /**
   * Endorsement keys that need no certificate: SHA-256 digests of their SubjectPublicKeyInfo (`countersign machines
   * ek` prints them).
   *
   * @default - none
   */
  readonly endorsementKeys?: readonly string[];

  /**
   * `listed`: only machines that `countersign machines allow` names; without `roots` the list is also the trust in
   * their endorsement keys. `any`: every machine whose endorsement key is trusted.
   *
   * @default - listed
   */
  readonly machines?: 'listed' | 'any';

  /**
   * What a machine may be called that the list does not name: `pattern:<name with *>`, first come, first served.
   * Required with `machines: any`.
   *
   * @default - none
   */
  readonly nodeName?: readonly string[];
}
