/**
 * Evidence of a machine that has a certificate of its operator's PKI (docs/attestation/x509.md): the chain, and a signature by the
 * key of the certificate over the binding digest. The nonce begins with the time, so that the signature covers it.
 */
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { decodeCertificate } from '../../core/x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../core/x509/chain/chain-certificate.ts';
import { pemBlocks } from '../../core/encoding/pem.ts';
import { providerIdOf, usualName } from '../../core/attestation/x509/rules.ts';
import { algorithmsByKey, signatureParameters, signedContent } from '../../core/attestation/x509/signature.ts';
import type { NameKind } from '../../core/policy/name-templates.ts';
import { evidenceVersions } from '../settings/settings.ts';
import type { NodeProviderPort } from './provider.ts';

/** The approver accepts a proof for five minutes, and its clock may be ahead. */
const staleAfterMilliseconds = 4 * 60_000;

interface MachineFiles {
  /** The certificate of the machine first, then CAs. */
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** `name`: the kind of name by which the approver knows the machine; absent: the first that the certificate has. */
export function x509Provider(readFiles: () => MachineFiles, name?: NameKind): NodeProviderPort {
  return {
    versions: evidenceVersions.x509,
    renews: true,

    describe() {
      return attempt(() => {
        const { leaf } = readChain(readFiles().certificatePem);
        const own = usualName(leaf.names, name === undefined ? undefined : [name]);
        if (own === undefined)
          throw new Error(`the certificate of this machine has no ${name ?? 'URI, common name or DNS name'}`);
        // Which of its addresses and names belong to the machine, the approver's rule says; the operator lists them (--serving-name).
        return { providerId: providerIdOf(own), names: [] };
      });
    },

    makeEvidence({ binding, nonce: random, now }) {
      return attempt(() => {
        const { certificatePem, keyPem } = readFiles();
        const { leaf, chain } = readChain(certificatePem);
        const key = readKey(keyPem, leaf);
        const { notAfter } = leaf.facts;
        if (now > notAfter)
          throw new Error(`the certificate of this machine expired at ${new Date(notAfter).toISOString()}`);
        const nonce = `${now}.${random}`;
        const algorithm = algorithmsByKey[leaf.key.kind];
        const parameters = signatureParameters(algorithm, key);
        const signature = sign(parameters.digest, signedContent(binding(nonce)), parameters.key).toString('base64');
        const data = JSON.stringify({ v: 1, chain, signature, algorithm, nonce });
        return { data, staleAt: Math.min(now + staleAfterMilliseconds, notAfter) };
      });
    },
  };
}

/** A promise that rejects, and not a call that throws. */
async function attempt<T>(work: () => T): Promise<T> {
  return work();
}

/** `chain`: base64, the certificate of the machine first. Roots are left out: the approver has its own. */
function readChain(pem: string): { readonly leaf: ChainCertificate; readonly chain: readonly string[] } {
  const [own, ...others] = pemBlocks(pem, 'CERTIFICATE').map((block) => new X509Certificate(block));
  if (own === undefined) throw new Error('the file of --attestation-certificate holds no certificate');
  const leaf = decodeCertificate(own.raw);
  if (!leaf.ok) throw new Error(`the certificate of this machine ${leaf.problem}`);
  const intermediates = others.filter((certificate) => !certificate.checkIssued(certificate));
  return { leaf: leaf.value, chain: [own, ...intermediates].map(({ raw }) => raw.toString('base64')) };
}

/** The text contains a secret, so no message quotes it. */
function readKey(pem: string, { der }: ChainCertificate): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new Error('the file of --attestation-key holds no private key in PEM without a passphrase');
  }
  // A program that renews both files writes one after the other.
  if (!new X509Certificate(der).checkPrivateKey(key))
    throw new Error(
      'the key of --attestation-key is not that of the certificate: if both are being renewed, this passes',
    );
  return key;
}
