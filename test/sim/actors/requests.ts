/** Keys, CAs and requests: made once for a whole run of simulations, since no decision hangs on their bytes. */
import { createPublicKey, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { issueCaCertificate } from '../../../core/ca/issue-ca-certificate.ts';
import { caValidity } from '../../../core/x509/ca-certificate.ts';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { evidenceLabels } from '../../../core/attestation/evidence/evidence.ts';
import { serialFrom } from '../../../core/x509/validity.ts';
import type { Signer } from '../../../core/ports/signer.ts';
import * as der from '../../harness/x509/der-writer.ts';
import type { NullEvidence } from '../../harness/attestation/null-provider.ts';
import { makeRequest, newKey, pemBlock, registeredId } from '../../harness/x509/requests.ts';
import type { SanSpec, TestKey } from '../../harness/x509/requests.ts';
import { caNames } from '../scenario.ts';
import { epoch } from '../runtime.ts';

const providerIdType = '1.3.6.1.4.1.11129.2.1.21';

export type SimulatedAuthority = Omit<Authority, 'signer'> & {
  readonly keyId: string;
  readonly publicKey: KeyObject;
  /** At once and on this thread. */
  readonly sign: (tbs: Uint8Array) => Uint8Array;
};

/** By name. */
export type SimulatedAuthorities = ReadonlyMap<string, SimulatedAuthority>;

export async function createAuthorities(): Promise<SimulatedAuthorities> {
  const made = await Promise.all(caNames.map(createAuthority));
  return new Map(made.map((authority) => [authority.name, authority]));
}

async function createAuthority(name: string): Promise<SimulatedAuthority> {
  const { privateKey, spki } = newKey('P-256');
  const [ca] = defaultCluster('demo', { maxTtlSeconds: 86_400, ca: name }).cas.values();
  if (ca?.kind !== 'selfSigned') throw new Error('the cluster has no CA of its own');
  const signOnThisThread = (tbs: Uint8Array): Uint8Array => new Uint8Array(sign('sha256', tbs, privateKey));
  const template = {
    subject: ca.subject,
    spki,
    serial: serialFrom(new Uint8Array(16).fill(1)),
    ...caValidity(epoch - 86_400_000, ca.validitySeconds),
    pathLength: ca.pathLen,
  };
  const keyId = keyIdOf(name);
  const certificate = await issueCaCertificate(template, {
    keyId,
    algorithm: 'ECDSA_SHA_256',
    sign: async (tbs) => ({ bytes: signOnThisThread(tbs) }),
  });
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  return { name, certificate, intermediates: [], keyId, publicKey, sign: signOnThisThread };
}

/** Of the CA of that name. */
export function keyIdOf(ca: string): string {
  return `key of ${ca}`;
}

export function authorityWith(
  { name, certificate, intermediates, keyId }: SimulatedAuthority,
  ask: Signer['sign'],
): Authority {
  return { name, certificate, intermediates, signer: { keyId, algorithm: 'ECDSA_SHA_256', sign: ask } };
}

const keys: TestKey[] = [];

/** The same one for the same number. */
export function keyOf(number: number): TestKey {
  while (keys.length <= number) keys.push(newKey('P-256'));
  return keys[number] ?? newKey('P-256');
}

const made = new Map<string, string>();

/** Once for each, whatever seed asks. */
function once(name: readonly unknown[], make: () => string): string {
  const key = JSON.stringify(name);
  const pem = made.get(key) ?? make();
  made.set(key, pem);
  return pem;
}

function encoded(pem: string): string {
  return Buffer.from(pem).toString('base64');
}

export interface NodeRequest {
  readonly node: string;
  readonly key: number;
  /** Whose provider ID it says it has. */
  readonly machine?: string;
  /** Of a serving certificate. */
  readonly sans?: SanSpec;
}

export interface SentEvidence extends NullEvidence {
  /** Another one than the provider knows. */
  readonly version?: string;
}

/** What a node sends, in base64, with evidence or without. */
export function nodeRequest({ node, key, machine, sans }: NodeRequest, evidence?: SentEvidence): string {
  const pem = once([node, key, machine, sans], () => {
    const extensions = machine === undefined ? [] : [{ oid: providerIdType, value: der.utf8(`null:///${machine}`) }];
    const subject = { O: ['system:nodes'], CN: `system:node:${node}` };
    return makeRequest({ key: keyOf(key), subject, ...(sans === undefined ? {} : { sans }), extensions }).pem;
  });
  if (evidence === undefined) return encoded(pem);
  const { version = 'null/v1', ...data } = evidence;
  return encoded(
    pem +
      pemBlock(evidenceLabels.provider, Buffer.from(version)) +
      pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify({ v: 1, ...data }))),
  );
}

/** What a person sends. */
export function userRequest(user: string, key: number): string {
  return encoded(once([user, key], () => makeRequest({ key: keyOf(key), subject: { O: ['testers'], CN: user } }).pem));
}

/** What no signer signs, by what is wrong with it; for the signer of users. */
export const nonsense = {
  'no right of its own to the name': (key: number) => ({
    key: keyOf(key),
    subject: { O: ['system:masters'], CN: 'eve' },
  }),
  'a signature that is not its key’s': (key: number) => ({
    key: keyOf(key),
    subject: { CN: 'eve' },
    signature: (signature: Buffer) =>
      signature.map((octet, index) => (index === signature.length - 1 ? octet ^ 1 : octet)),
  }),
  'a key of a kind that is not signed': () => ({ key: 'P-224', subject: { CN: 'eve' } }) as const,
  'an empty subject': (key: number) => ({ key: keyOf(key), subject: {} }),
  'a name of a type that is not signed': (key: number) => ({
    key: keyOf(key),
    subject: { CN: 'eve' },
    sans: { raw: [registeredId('1.2.3')] },
  }),
} as const;

export function nonsenseRequest(what: keyof typeof nonsense, key: number): string {
  return encoded(once([what, key], () => makeRequest(nonsense[what](key)).pem));
}

/** Nothing that can be read, and more than is read. */
export const junk = encoded('-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n');
export const tooLarge = encoded('x'.repeat(140_000));
