/** Moves the private key of an existing CA into its key of KMS, in this process. It can be repeated after any failure. */
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { checkImport } from '../../core/ca/import/check-import.ts';
import type { ImportedCertificates } from '../../core/ca/import/files.ts';
import type { KeySpec } from '../../core/configuration/schema/cluster.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ImportableKey, Io } from '../runtime/io.ts';
import type { ImportPlan } from './deployed-import.ts';

/** KMS's names. */
const keySpecs: Readonly<Record<KeySpec, string>> = {
  'P-256': 'ECC_NIST_P256',
  'P-384': 'ECC_NIST_P384',
  'P-521': 'ECC_NIST_P521',
  'RSA-2048': 'RSA_2048',
  'RSA-3072': 'RSA_3072',
  'RSA-4096': 'RSA_4096',
};

/** Afterwards KMS has the key of the certificate, or nothing was changed. Throws CommandFailure. */
export async function importKeyMaterial(
  { ca, keyId }: ImportPlan,
  files: ImportedCertificates,
  key: KeyObject,
  io: Io,
): Promise<void> {
  // All of this before KMS gets anything: KMS binds a key for ever to the first material that it gets.
  const spki = new Uint8Array(createPublicKey(key).export({ type: 'spki', format: 'der' }));
  const checked = await checkImport(ca, files, spki, io.now());
  if (!checked.ok) {
    const { why, message } = checked.problem;
    const text = why === 'WrongKey' ? 'the private key does not belong to the certificate' : message;
    throw new CommandFailure(exitCodes.refused, `${why}: ${text}`, 'nothing was changed');
  }
  if (ca.keyMaterial !== 'imported')
    throw new CommandFailure(
      exitCodes.configuration,
      `KMS made the key of CA ${ca.name} itself, so no other can be imported`,
      'a CA of kind: imported with keyMaterial: imported, of another name, has a key that awaits its material',
    );
  checkKeySpec(ca, key);
  const kms = await io.connectKey(keyId);
  try {
    await move(kms, ca.name, keySpecs[ca.keySpec], key, spki, io);
  } finally {
    kms.close();
  }
}

export function checkKeySpec({ name, keySpec }: ImportPlan['ca'], key: KeyObject): void {
  const given = keyKind(key);
  if (given === keySpec) return;
  throw new CommandFailure(
    exitCodes.configuration,
    `the private key is ${given}, and CA ${name} is configured with keySpec ${keySpec}`,
    'nothing was changed; a CA of another name with the right keySpec has another key in KMS',
  );
}

async function move(
  kms: ImportableKey,
  name: string,
  keySpec: string,
  key: KeyObject,
  spki: Uint8Array,
  io: Io,
): Promise<void> {
  const about = await kms.describe();
  if (about.origin !== 'EXTERNAL' || about.keySpec !== keySpec)
    throw new CommandFailure(
      exitCodes.configuration,
      `the key of CA ${name} in KMS has origin ${about.origin} and spec ${about.keySpec}; EXTERNAL and ${keySpec} are needed`,
      'nothing was changed; deploy the stack with this countersign.yaml',
    );
  if (about.state === 'PendingImport') {
    const material = key.export({ type: 'pkcs8', format: 'der' });
    try {
      await kms.importMaterial(material, (count) => io.randomBytes(count));
    } finally {
      material.fill(0);
    }
  } else if (about.state !== 'Enabled')
    throw new CommandFailure(
      exitCodes.configuration,
      `the key of CA ${name} in KMS is in state ${about.state}`,
      'nothing was changed; enable it, or cancel its deletion, in KMS, and run the same command again',
    );
  // Nothing is in force yet. Only now does the ca function get the certificate, and it compares once more.
  if (!Buffer.from(await kms.publicKey()).equals(spki))
    throw new CommandFailure(
      exitCodes.conflict,
      `KMS has another key for CA ${name} than the given one; it was left as it is, and no certificate is in force`,
      'KMS keeps the first material of a key for ever: give the CA another name in countersign.yaml and deploy, for a new key',
    );
}

function keyKind({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const { namedCurve = '', modulusLength } = asymmetricKeyDetails ?? {};
  if (asymmetricKeyType === 'rsa') return `RSA-${modulusLength}`;
  return (
    { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' }[namedCurve] ?? `${asymmetricKeyType} ${namedCurve}`
  );
}
