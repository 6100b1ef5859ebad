/** subjectKeyIdentifier and authorityKeyIdentifier of the certificates of an import (RFC 5280 §4.2.1.1, §4.2.1.2). */
import { childrenOf, contentOf, derTag, elementIn, encodingOf } from '../../encoding/der-reader.ts';
import type { DerElement } from '../../encoding/der-reader.ts';
import { same } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { extensionType } from '../../x509/model.ts';

/** AuthorityKeyIdentifier ::= SEQUENCE { keyIdentifier [0] OPTIONAL, authorityCertIssuer [1] OPTIONAL, authorityCertSerialNumber [2] OPTIONAL } */
function authorityFields({ facts }: ChainCertificate): readonly DerElement[] {
  const value = facts.extensions.get(extensionType.authorityKeyIdentifier)?.value;
  return childrenOf(elementIn(value), derTag.sequence) ?? [];
}

export function namesIssuerKey(certificate: ChainCertificate): boolean {
  return authorityFields(certificate).some(({ tag }) => tag === 0x80);
}

/** OpenSSL looks for the issuer by these fields, and refuses an issuer that they do not describe, even if its key verifies the signature. */
export function namesOtherKey(certificate: ChainCertificate, issuer: ChainCertificate): boolean {
  const { subjectKeyIdentifier, serialOctets, issuerName } = issuer.facts;
  return authorityFields(certificate).some((field) => {
    switch (field.tag) {
      case 0x80:
        return subjectKeyIdentifier !== undefined && !same(contentOf(field), subjectKeyIdentifier);
      case 0x82:
        return !same(contentOf(field), serialOctets);
      default: {
        // GeneralNames; only a directoryName ([4] EXPLICIT) can be compared.
        const names = field.children.filter(({ tag }) => tag === 0xa4).flatMap(({ children }) => children);
        return names.length > 0 && !names.some((name) => same(encodingOf(name), issuerName));
      }
    }
  });
}
