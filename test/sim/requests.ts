/** Keys, a CA and requests: made once for a whole run of simulations, since no decision hangs on their bytes. */
import { sign } from 'node:crypto';
import { caValidity, issueCaCertificate } from '../../core/ca-certificate.ts';
import type { Authority } from '../../core/certificate.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import { evidenceLabels } from '../../core/evidence.ts';
import { serialFrom } from '../../core/lifetime.ts';
import type { Signer } from '../../core/ports.ts';
import * as der from '../harness/der-writer.ts';
import type { NullEvidence } from '../harness/null-provider.ts';
import { makeRequest, newKey, pemBlock } from '../harness/requests.ts';
import type { TestKey } from '../harness/requests.ts';
import { epoch } from './stage.ts';

const providerIdType = '1.3.6.1.4.1.11129.2.1.21';

export type SimulatedAuthority = Omit<Authority, 'signer'> & {
  readonly keyId: string;
  /** At once and on this thread. */
  readonly sign: (tbs: Uint8Array) => Uint8Array;
};

export async function createAuthority(cluster: ClusterConfiguration): Promise<SimulatedAuthority> {
  const { privateKey, spki } = newKey('P-256');
  const [ca] = cluster.cas.values();
  if (ca === undefined) throw new Error('the cluster has no CA');
  const signOnThisThread = (tbs: Uint8Array): Uint8Array => new Uint8Array(sign('sha256', tbs, privateKey));
  const template = {
    subject: ca.subject,
    spki,
    serial: serialFrom(new Uint8Array(16).fill(1)),
    ...caValidity(epoch - 86_400_000, ca.validitySeconds),
    pathLength: ca.pathLen,
  };
  const keyId = 'simulated';
  const certificate = await issueCaCertificate(template, {
    keyId,
    algorithm: 'ECDSA_SHA_256',
    sign: async (tbs) => ({ bytes: signOnThisThread(tbs) }),
  });
  return { name: 'ca', certificate, intermediates: [], keyId, sign: signOnThisThread };
}

export function authorityWith({ keyId, ...authority }: SimulatedAuthority, ask: Signer['sign']): Authority {
  const { name, certificate, intermediates } = authority;
  return { name, certificate, intermediates, signer: { keyId, algorithm: 'ECDSA_SHA_256', sign: ask } };
}

const keys: TestKey[] = [];

/** The same one for the same number. */
export function keyOf(number: number): TestKey {
  while (keys.length <= number) keys.push(newKey('P-256'));
  return keys[number] ?? newKey('P-256');
}

const made = new Map<string, string>();

export interface NodeRequest {
  readonly node: string;
  readonly key: number;
  /** Whose provider ID it says it has. */
  readonly machine?: string;
  readonly serving?: boolean;
}

/** What a node sends, in base64, with evidence or without. */
export function nodeRequest({ node, key, machine, serving = false }: NodeRequest, evidence?: NullEvidence): string {
  const name = JSON.stringify([node, key, machine, serving]);
  let pem = made.get(name);
  if (pem === undefined) {
    ({ pem } = makeRequest({
      key: keyOf(key),
      subject: { O: ['system:nodes'], CN: `system:node:${node}` },
      ...(serving ? { sans: { dns: [node] } } : {}),
      ...(machine === undefined
        ? {}
        : { extensions: [{ oid: providerIdType, value: der.utf8(`null:///${machine}`) }] }),
    }));
    made.set(name, pem);
  }
  const blocks =
    evidence === undefined
      ? ''
      : pemBlock(evidenceLabels.provider, Buffer.from('null/v1')) +
        pemBlock(evidenceLabels.data, Buffer.from(JSON.stringify({ v: 1, ...evidence })));
  return Buffer.from(pem + blocks).toString('base64');
}

/** What a person sends. */
export function userRequest(user: string, key: number): string {
  const name = JSON.stringify([user, key]);
  const pem = made.get(name) ?? makeRequest({ key: keyOf(key), subject: { O: ['testers'], CN: user } }).pem;
  made.set(name, pem);
  return Buffer.from(pem).toString('base64');
}
