/**
 * A CA key in this process's memory, behind the same port as a key in KMS: for the demo, development and tests.
 */
import { constants, createHash, createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto';
import type { KeyObject, SigningOptions } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeySpec } from '../../core/configuration/schema/cluster.ts';
import type { Signature, SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';

const keySpecs: readonly KeySpec[] = ['P-256', 'P-384', 'P-521', 'RSA-2048', 'RSA-3072', 'RSA-4096'];

interface Algorithm {
  readonly hash: 'sha256' | 'sha384' | 'sha512';
  readonly specs: readonly KeySpec[];
  /** Absent where node:crypto's defaults are meant: PKCS #1 v1.5 for RSA, DER for ECDSA. */
  readonly options?: SigningOptions;
}

const rsa = ['RSA-2048', 'RSA-3072', 'RSA-4096'] as const;
/** The salt is as long as the digest: what KMS makes, and the only length Go's and our AlgorithmIdentifier name. */
const pss: SigningOptions = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
};

/** One curve for each digest, as in KMS. */
const algorithms: Readonly<Record<SignatureAlgorithm, Algorithm>> = {
  ECDSA_SHA_256: { hash: 'sha256', specs: ['P-256'] },
  ECDSA_SHA_384: { hash: 'sha384', specs: ['P-384'] },
  ECDSA_SHA_512: { hash: 'sha512', specs: ['P-521'] },
  RSASSA_PKCS1_V1_5_SHA_256: { hash: 'sha256', specs: rsa },
  RSASSA_PKCS1_V1_5_SHA_384: { hash: 'sha384', specs: rsa },
  RSASSA_PKCS1_V1_5_SHA_512: { hash: 'sha512', specs: rsa },
  RSASSA_PSS_SHA_256: { hash: 'sha256', specs: rsa, options: pss },
  RSASSA_PSS_SHA_384: { hash: 'sha384', specs: rsa, options: pss },
  RSASSA_PSS_SHA_512: { hash: 'sha512', specs: rsa, options: pss },
};

export const signatureAlgorithms = Object.keys(algorithms) as SignatureAlgorithm[];

/** What a key signs with unless told otherwise. */
export function defaultSignatureAlgorithm(spec: KeySpec): SignatureAlgorithm {
  switch (spec) {
    case 'P-256':
      return 'ECDSA_SHA_256';
    case 'P-384':
      return 'ECDSA_SHA_384';
    case 'P-521':
      return 'ECDSA_SHA_512';
    case 'RSA-2048':
    case 'RSA-3072':
    case 'RSA-4096':
      return 'RSASSA_PKCS1_V1_5_SHA_256';
  }
}

/** A new CA key. It is in this process only until somebody writes it down. */
export async function generateKey(spec: KeySpec): Promise<KeyObject> {
  const generate = promisify(generateKeyPair);
  switch (spec) {
    case 'P-256':
    case 'P-384':
    case 'P-521':
      return (await generate('ec', { namedCurve: spec })).privateKey;
    case 'RSA-2048':
    case 'RSA-3072':
    case 'RSA-4096':
      return (await generate('rsa', { modulusLength: Number(spec.slice(4)), publicExponent: 65_537 })).privateKey;
  }
}

/** A signer over a private key (PEM or KeyObject). Refuses a key of a kind no CA has, or that does not fit the algorithm. */
export function embeddedSigner(privateKey: KeyObject | string, algorithm?: SignatureAlgorithm): Signer {
  refuseInsideLambda('the embedded CA key', process.env);
  const key = typeof privateKey === 'string' ? createPrivateKey(privateKey) : privateKey;
  const spec = specOf(key);
  const chosen = algorithm ?? defaultSignatureAlgorithm(spec);
  const { hash, specs, options } = algorithms[chosen];
  if (!specs.includes(spec)) throw new Error(`a key of kind ${spec} cannot sign with ${chosen}`);
  // The bare key where it will do: an object costs Node half a P-256 signature more.
  const input = options === undefined ? key : { key, ...options };

  /** A P-256 signature takes less than waking a thread and waiting for it. */
  async function onThisThread(tbs: Uint8Array): Promise<Signature> {
    return { bytes: new Uint8Array(sign(hash, tbs, input)) };
  }
  /** One on P-521 or of RSA-4096 takes milliseconds that the event loop should not spend. */
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
