/**
 * Evidence changed at random: its text, its certificates, and certificates that a CA of the operator signed with the change in them,
 * so that what is behind the signatures is reached too. The same seed gives the same changes.
 */
import { X509Certificate, sign } from 'node:crypto';
import { x509Provider } from '../../../../core/attestation/x509/provider.ts';
import { nick, runCampaign } from '../../../harness/determinism/campaign.ts';
import type { Attempt, Campaign, Random } from '../../../harness/determinism/campaign.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import {
  basicConstraints,
  general,
  keyIdentifiers,
  keyOf,
  keyUsage,
  nameConstraints,
  signingAlgorithms,
  subjectAltName,
} from '../../../harness/x509/certificate-writer.ts';
import { dataOf, evidenceOf } from './judge.ts';
import * as world from './machine.ts';

/** Chains with every extension that is read. */
const san = subjectAltName(general.uri(world.spiffeId), general.dns('worker-1.prod.example'), general.ip(10, 0, 0, 5));
const limits = nameConstraints({
  permitted: [general.uri('prod.example'), general.dns('prod.example')],
  excluded: [general.ip(11, 0, 0, 0, 255, 0, 0, 0)],
});
const identifiers = (own: string, issuer: string) => keyIdentifiers(Buffer.from(own), Buffer.from(issuer));
const chains: readonly (readonly [leaf: Buffer, intermediate: Buffer])[] = [
  [world.certificates.leaf, world.certificates.intermediate],
  [
    world.leaf({ extensions: world.leafExtensionsBut({ subjectAltName: san }, ...identifiers('m', 'i')) }),
    world.intermediate({ extensions: [basicConstraints(true, 0), keyUsage(5), limits, ...identifiers('i', 'r')] }),
  ],
];
const signers = [keyOf('intermediate'), keyOf('root')] as const;

/** The signed part of a certificate, changed and signed anew. */
function signedAnew(certificate: Buffer, key: (typeof signers)[number], random: Random): Buffer {
  // SEQUENCE with a length of three octets, then the signed part, with such a length too.
  const tbs = certificate.subarray(4, 8 + certificate.readUInt16BE(6));
  const changed = nick(tbs, random);
  const { identifier, digest } = signingAlgorithms['ECDSA SHA-256'];
  return der.sequence(changed, identifier, der.bits(sign(digest, changed, key)));
}

function mutated(random: Random): { readonly data: Buffer; readonly leaf: Buffer } {
  const chosen = chains[random(chains.length)] ?? chains[0];
  const chain: Buffer[] = [...(chosen ?? [])];
  const at = random(2);
  switch (random(4)) {
    case 0:
      break;
    case 1:
      chain[at] = nick(chain[at] ?? Buffer.of(), random);
      break;
    default:
      chain[at] = signedAnew(chain[at] ?? Buffer.of(), signers[at] ?? signers[0], random);
  }
  const isText = chain.every((one, index) => one === chosen?.[index]);
  const data = dataOf({
    chain,
    ...(isText && random(2) === 0 ? { signature: (usual) => nick(usual, random) } : {}),
    ...(isText ? { dataText: (text) => nick(Buffer.from(text), random).toString('latin1') } : {}),
  });
  return { data, leaf: chain[0] ?? Buffer.of() };
}

const provider = x509Provider(world.policy);

async function attempt(random: Random): Promise<Attempt> {
  const { data, leaf } = mutated(random);
  const examined = await provider.examine(evidenceOf(data));
  if (!examined.ok) {
    const other = examined.problem.find(({ code }) => code !== 'AttestationInvalid' && code !== 'IdentityNotAllowed');
    return { violations: examined.problem, ...(other === undefined ? {} : { fault: other.code }) };
  }
  // Another reader of the certificate finds the same name in it, once.
  const { identity } = examined.value;
  const { subjectAltName: names = '' } = new X509Certificate(leaf);
  const uris = names.split(', ').filter((name) => name.startsWith('URI:'));
  const isSame = uris.join() === `URI:${identity.slice('x509#prod/uri/'.length)}`;
  return { violations: [], ...(isSame ? {} : { fault: `is ${identity}, OpenSSL reads ${names}` }) };
}

export function runX509Campaign(seed: number, count: number): Promise<Campaign> {
  return runCampaign(seed, count, attempt);
}
