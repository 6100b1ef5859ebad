/**
 * A CA key in the memory of this process, with the same port as a key in KMS: for the demo, development and tests.
 */
import { constants, createHash, createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeySpec } from '../../core/configuration/schema/cluster.ts';
import { algorithmsOfKey, signatureDigests } from '../../core/ports/signer.ts';
import type { Signature, SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';

const keySpecs = Object.keys(algorithmsOfKey) as KeySpec[];

/** The salt is as long as the digest, as in KMS: Go and tbs-certificate.ts have an AlgorithmIdentifier for this length only. */
const pss: SigningOptions = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
};

/** A new CA key, in the memory of this process only. */
export async function generateKey(spec: KeySpec): Promise<KeyObject> {
  const generate = promisify(generateKeyPair);
  const { privateKey } = spec.startsWith('P-')
    ? await generate('ec', { namedCurve: spec })
    : await generate('rsa', { modulusLength: Number(spec.slice(4)), publicExponent: 65_537 });
  return privateKey;
}

/** A signer for a private key (PEM or KeyObject). Throws if a CA cannot have such a key, or if it does not fit the algorithm. */
export function embeddedSigner(privateKey: KeyObject | string, algorithm?: SignatureAlgorithm): Signer {
  refuseInsideLambda('the embedded CA key', process.env);
  const key = typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey;
  const spec = specOf(key);
  const allowed: readonly SignatureAlgorithm[] = algorithmsOfKey[spec];
  const chosen = algorithm ?? algorithmsOfKey[spec][0];
  if (!allowed.includes(chosen)) throw new Error(`a key of kind ${spec} cannot sign with ${chosen}`);
  const hash = signatureDigests[chosen];
  // Only PSS needs options. With an options object Node takes 1.5 times as long for a P-256 signature.
  const input = chosen.startsWith('RSASSA_PSS') ? { key, ...pss } : key;

  /** A P-256 signature takes less time than a switch to another thread. */
  async function onThisThread(tbs: Uint8Array): Promise<Signature> {
    return { bytes: new Uint8Array(sign(hash, tbs, input)) };
  }
  /** A P-521 or RSA-4096 signature takes milliseconds, which would block the event loop. */
  function onOtherThread(tbs: Uint8Array): Promise<Signature> {
    return new Promise((resolve, reject) => {
      sign(hash, tbs, input, (error, signature) => {
        if (error === null) resolve({ bytes: new Uint8Array(signature) });
        else reject(error);
      });
    });
  }
  return {
    keyId: `embedded:${createHash('sha256').update(publicKeyInfo(key)).digest('hex')}`,
    algorithm: chosen,
    sign: spec === 'P-256' ? onThisThread : onOtherThread,
  };
}

/** DER SubjectPublicKeyInfo of a private key. */
export function publicKeyInfo(privateKey: KeyObject): Uint8Array {
  return new Uint8Array(createPublicKey(privateKey).export({ type: 'spki', format: 'der' }));
}

/** With which this key can sign, whatever is configured. */
export function algorithmsFor(privateKey: KeyObject): readonly SignatureAlgorithm[] {
  return algorithmsOfKey[specOf(privateKey)];
}

function specOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): KeySpec {
  const { namedCurve, modulusLength } = asymmetricKeyDetails ?? {};
  const found = keySpecs.find((spec) =>
    asymmetricKeyType === 'ec'
      ? curveNames[namedCurve ?? ''] === spec
      : asymmetricKeyType === 'rsa' && `RSA-${modulusLength}` === spec,
  );
  const seen = asymmetricKeyType === 'ec' ? `EC ${namedCurve}` : `${asymmetricKeyType} ${modulusLength ?? ''}`.trim();
  if (found === undefined) throw new Error(`a CA key is one of ${keySpecs.join(', ')}; this one is ${seen}`);
  return found;
}

/** OpenSSL's names of the curves. */
const curveNames: Readonly<Record<string, KeySpec>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};
