import { nodesGroup, nodeUserPrefix } from './in-tree-rules.ts';
import { atMost, printable, quoted, quotedList } from '../outcome/printable-text.ts';
import { matchesRequester } from './requester-patterns.ts';
import { violationUnless } from './rule.ts';
import type { Question, Rule } from './rule.ts';
import { isKnownUsage } from '../x509/key-usages.ts';

/** Deviation 2. The profile lists the permitted kinds. No profile can list other kinds (P-224, DSA …). */
export const keyKind: Rule = {
  check: 'the profile permits this kind of key',
  code: 'KeyNotPermitted',
  observed: ({ request }) => request.publicKey.description,
  violations: ({ profile, request: { publicKey } }) =>
    violationUnless(
      publicKey.kind !== undefined && profile.keys.includes(publicKey.kind),
      `key kind ${publicKey.description} is not permitted (${profile.keys.join(', ')})`,
    ),
};

/** Deviation 2. A key above 8192 bits makes verifiers slow; Go's TLS refuses such keys too. */
export const rsaSize: Rule = {
  check: 'an RSA key has 2048 to 8192 bits',
  code: 'KeyNotPermitted',
  observed: ({ request }) => request.publicKey.description,
  applies: ({ request: { publicKey } }) => publicKey.kind === 'RSA',
  violations: ({ request: { publicKey } }) =>
    violationUnless(
      publicKey.kind !== 'RSA' || (publicKey.bits >= 2048 && publicKey.bits <= 8192),
      `an RSA key of ${publicKey.bits} bits is not permitted (2048 to 8192)`,
    ),
};

/** Deviation 2. SHA-1 and MD5 have practical collisions: such a self-signature may have been made for other content. */
export const signatureHash: Rule = {
  check: 'the self-signature uses SHA-256, SHA-384, SHA-512 or Ed25519',
  code: 'KeyNotPermitted',
  observed: ({ request }) => request.signatureHash ?? request.publicKey.description,
  violations: ({ request: { signatureHash: hash, publicKey } }) =>
    violationUnless(
      hash === undefined ? publicKey.kind === 'Ed25519' : ['SHA-256', 'SHA-384', 'SHA-512'].includes(hash),
      `a self-signature with ${printable(hash ?? 'an unknown digest')} is not permitted (SHA-256, SHA-384, SHA-512, Ed25519)`,
    ),
};

/** Deviation 4: if a name were dropped silently, the requester would get a certificate that does not work. */
export const sanTypes: Rule = {
  check: 'subjectAltNames are DNS, email, IP or URI',
  code: 'SanNotPermitted',
  observed: ({ request }) =>
    request.sans.unsupported.length === 0 ? 'no others' : quotedList(request.sans.unsupported),
  applies: ({ request: { sans } }) => Object.values(sans).some((names: readonly unknown[]) => names.length > 0),
  violations: ({ request }) =>
    atMost(request.sans.unsupported, (type) => `a subjectAltName of type ${printable(type)} is not signed`),
};

/** Deviations 7 and 8. A certificate without extended usages is valid for all of them (RFC 5280 §4.2.1.12). */
export const usagesKnown: Rule = {
  check: 'usages are present and known',
  code: 'UsageNotPermitted',
  observed: ({ object }) => quotedList(object.usages),
  violations: ({ object: { usages } }) => [
    ...violationUnless(usages.length > 0, 'usages are empty'),
    ...atMost(
      usages.filter((usage) => !isKnownUsage(usage)),
      (usage) => `usage ${quoted(usage)} is unknown`,
    ),
  ],
};

export const requesterAllowed: Rule = {
  check: 'the requester is one the profile names, if it names any',
  code: 'RequesterNotAllowed',
  observed: ({ object }) => `${quoted(object.username)}, groups ${quotedList(object.groups)}`,
  applies: ({ profile }) => namesRequesters(profile),
  violations: (question) => {
    const { requester } = question.profile;
    const { username, groups } = question.object;
    return violationUnless(
      !namesRequesters(question.profile) ||
        matchesRequester(requester, username, groups) ||
        (requester.nodeItself === true && isNodeItself(question)),
      `requester ${quoted(username)} may not use this signer`,
    );
  },
};

function namesRequesters({ requester: { users, groups, nodeItself } }: Question['profile']): boolean {
  return users.length > 0 || groups.length > 0 || nodeItself === true;
}

/** Whether the requester is the node in the certificate. A node cannot get a certificate for another node. */
function isNodeItself({ object: { username, groups }, request: { subject } }: Question): boolean {
  return username.startsWith(nodeUserPrefix) && username === subject.commonName && groups.includes(nodesGroup);
}
