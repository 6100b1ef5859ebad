/**
 * The two keys of a TPM that evidence is about. Both are made again from a template when they are needed: the same seed and the
 * same template give the same key, so nothing is stored and no slot of the TPM stays occupied.
 */
import { createPublicKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ChallengeRefusedError } from './provider.ts';
import { sessionFile, TpmError } from './tpm-tools.ts';
import type { Tpm } from './tpm-tools.ts';
import type { EndorsementKeyKind } from '../settings/settings.ts';

/** The public half of the endorsement key (EK), which names the machine. */
export interface EndorsementKey {
  readonly kind: EndorsementKeyKind;
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer;
  /** DER, if the TPM has one. */
  readonly certificate?: Buffer;
}

/** Of each kind: the NV index of its certificate (TCG EK Credential Profile 2.6, 2.2.1.4), and its name in tpm2_createek. */
const kinds: Readonly<Record<EndorsementKeyKind, KindOfKey>> = {
  'rsa-2048': { certificate: 0x1c00002, algorithm: 'rsa', type: 'rsa 2048' },
  'p-256': { certificate: 0x1c0000a, algorithm: 'ecc', type: 'ec prime256v1' },
  'p-384': { certificate: 0x1c00016, algorithm: 'ecc384', type: 'ec secp384r1' },
};

interface KindOfKey {
  readonly certificate: number;
  readonly algorithm: string;
  readonly type: string;
}

/**
 * The EK of the wanted kind, else the first kind of which the TPM has a certificate, else P-256: a TPM makes an RSA key in some
 * ten seconds, and that for every request.
 */
export async function readEndorsementKey(tpm: Tpm, wanted: EndorsementKeyKind | undefined): Promise<EndorsementKey> {
  const present = await handles(tpm, 'nv-index');
  const offered = (Object.keys(kinds) as EndorsementKeyKind[]).find((each) => present.has(kinds[each].certificate));
  const kind = wanted ?? offered ?? 'p-256';
  const { certificate: index } = kinds[kind];
  // An index that cannot be read is an error: the machine must not become another one.
  if (present.has(index)) return fromCertificate(kind, await readCertificate(tpm, index));
  return { kind, spki: spkiOf(await createEndorsementKey(tpm, kind)) };
}

function fromCertificate(kind: EndorsementKeyKind, certificate: Buffer): EndorsementKey {
  const { publicKey } = new X509Certificate(certificate);
  if (typeOf(publicKey) !== kinds[kind].type)
    throw new TpmError(
      `the TPM's certificate of its ${kind} endorsement key is about a key of type ${typeOf(publicKey)}`,
    );
  return { kind, spki: spkiOf(publicKey), certificate };
}

async function readCertificate(tpm: Tpm, index: number): Promise<Buffer> {
  await tpm.run('tpm2_nvread', [hex(index), '-o', 'ek.der']);
  const stored = tpm.read('ek.der');
  // Some manufacturers fill the index behind the certificate.
  const length = stored[0] === 0x30 && stored[1] === 0x82 ? 4 + stored.readUInt16BE(2) : 0;
  if (length === 0 || length > stored.length)
    throw new TpmError(`NV index ${hex(index)} of the TPM holds no certificate`);
  return stored.subarray(0, length);
}

const ekContext = 'ek.ctx';

/**
 * Makes it in `ekContext` and returns its public key. By the default template of its kind: with `-t`, which takes a manufacturer's own
 * template from NV, tpm2_createek 5.4 makes another P-256 key each time.
 */
async function createEndorsementKey(tpm: Tpm, kind: EndorsementKeyKind): Promise<KeyObject> {
  await tpm.run('tpm2_createek', ['-G', kinds[kind].algorithm, '-c', ekContext, '-f', 'pem', '-u', 'ek.pem']);
  return createPublicKey(tpm.read('ek.pem'));
}

/**
 * A context or handle of the EK for the next programs. The persistent one, if the TPM has it: a chip is slow, and a manufacturer may
 * have made it by another template.
 */
async function loadEndorsementKey(tpm: Tpm, { kind, spki }: EndorsementKey): Promise<string> {
  for (const handle of await handles(tpm, 'persistent')) {
    // Those of endorsement keys (TCG Registry of Reserved TPM 2.0 Handles and Localities).
    if (handle < 0x81010000 || handle > 0x8101ffff) continue;
    const file = `${hex(handle)}.pem`;
    await tpm.run('tpm2_readpublic', ['-c', hex(handle), '-f', 'pem', '-o', file]);
    if (spkiOf(createPublicKey(tpm.read(file))).equals(spki)) return hex(handle);
  }
  if (!spkiOf(await createEndorsementKey(tpm, kind)).equals(spki))
    throw new TpmError(`the ${kind} endorsement key of the TPM is not the one of its certificate`);
  return ekContext;
}

export const akContext = 'ak.ctx';

/**
 * The attestation key (AK): a restricted signing key, so that it signs no statement that the TPM did not make. A primary key of
 * the endorsement hierarchy: it survives a change of the TPM's owner, as the EK does. Without `noda` wrong authorizations by
 * others would lock it. Returns TPMT_PUBLIC.
 */
export async function createAttestationKey(tpm: Tpm): Promise<Buffer> {
  const attributes = 'fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign|noda';
  const template = ['-C', 'e', '-g', 'sha256', '-G', 'ecc256:ecdsa-sha256:null', '-a', attributes, '-u', '-'];
  // Part of the template: without it every program with this template would have this key.
  await tpm.run('tpm2_createprimary', [...template, '-c', akContext], 'countersign attestation key v1');
  await tpm.run('tpm2_readpublic', ['-c', akContext, '-f', 'tss', '-o', 'ak.pub']);
  // TPM2B_PUBLIC: the size, then TPMT_PUBLIC.
  return tpm.read('ak.pub').subarray(2);
}

/**
 * The secret in the credential. Only this TPM opens it, and only for the key in `akContext`. The template of an RSA-2048 or P-256
 * EK demands the authorization of the hierarchy by a session, that of a P-384 EK an empty password.
 */
export async function activateCredential(tpm: Tpm, key: EndorsementKey, credential: Uint8Array): Promise<Buffer> {
  if (!isCredential(credential)) throw new ChallengeRefusedError('the credential of the challenge is malformed');
  const endorsementKey = await loadEndorsementKey(tpm, key);
  tpm.write('credential', credential);
  const authorization = key.kind === 'p-384' ? [] : ['-P', `session:${sessionFile}`];
  if (key.kind !== 'p-384') {
    await tpm.run('tpm2_startauthsession', ['--policy-session', '-S', sessionFile]);
    await tpm.run('tpm2_policysecret', ['-S', sessionFile, '-c', 'e']);
  }
  const activate = ['-c', akContext, '-C', endorsementKey, '-i', 'credential', '-o', 'secret', ...authorization];
  try {
    await tpm.run('tpm2_activatecredential', activate);
  } catch (error) {
    // Made for another key or machine, or changed on its way.
    if (error instanceof TpmError && isAboutCommand(error.code)) throw new ChallengeRefusedError(error.message);
    throw error;
  }
  return tpm.read('secret');
}

/** As tpm2-tools read it: magic, version, then TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET, each behind its size. */
function isCredential(bytes: Uint8Array): boolean {
  const view = Buffer.from(bytes);
  if (view.length < 12 || view.toString('hex', 0, 8) !== 'badcc0de00000001') return false;
  const second = 10 + view.readUInt16BE(8);
  return view.length >= second + 2 && view.length === second + 2 + view.readUInt16BE(second);
}

/** Not warnings, which a lockout is, and not sessions: these have bit 11 (TPM 2.0 Part 2, 6.6.2). */
function isAboutCommand(code: number | undefined): boolean {
  return code !== undefined && (code & 0x800) === 0;
}

/** The numbers in the output of tpm2_getcap: `- 0x1C00002`. */
async function handles(tpm: Tpm, kind: 'nv-index' | 'persistent'): Promise<ReadonlySet<number>> {
  const listed = await tpm.run('tpm2_getcap', [`handles-${kind}`]);
  return new Set([...listed.matchAll(/0x[0-9a-f]+/gi)].map(([text]) => Number(text)));
}

function spkiOf(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

function typeOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  return `${asymmetricKeyType} ${asymmetricKeyDetails?.namedCurve ?? asymmetricKeyDetails?.modulusLength}`;
}

function hex(handle: number): string {
  return `0x${handle.toString(16)}`;
}
