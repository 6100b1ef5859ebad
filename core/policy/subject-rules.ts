/** Rules about common name and organizations, for signers that let the requester choose them. */
import type { Subject, SubjectAltNames } from '../x509/model.ts';
import { nodesGroup, nodeUserPrefix } from './in-tree-rules.ts';
import { isSubdomain, nameMatches } from './patterns.ts';
import type { Profile } from './profile.ts';
import { atMost, quoted, quotedList } from '../outcome/printable-text.ts';
import { isReservedName } from './reserved-names.ts';
import { violationUnless } from './rule.ts';
import type { Rule } from './rule.ts';
import { isNodeSigner } from './signer-names.ts';
import { encodeSubject } from '../x509/distinguished-name.ts';

/**
 * docs/signers.md, deviations 3, 7 and 14: the API server treats the holder of a certificate with such a name as that user,
 * group or component. Members of system:masters bypass all authorization.
 */
export const namesNotReserved: Rule = {
  check: 'no reserved name beyond those this signer may give',
  code: 'NameReserved',
  observed: ({ request: { subject } }) => `CN ${quoted(subject.commonName)}, O ${quotedList(subject.organizations)}`,
  violations: ({ profile, request: { subject } }) => [
    ...violationUnless(
      mayIssue(profile, 'CN', subject.commonName),
      `common name ${quoted(subject.commonName)} is reserved; this signer does not issue it`,
    ),
    ...atMost(
      subject.organizations.filter((organization) => !mayIssue(profile, 'O', organization)),
      (organization) => `organization ${quoted(organization)} is reserved; this signer does not issue it`,
    ),
  ],
};

function mayIssue(profile: Profile, place: 'CN' | 'O', name: string): boolean {
  // Node names first: no configuration permits them for another signer.
  if (name.startsWith(nodeUserPrefix)) return place === 'CN' && isNodeSigner(profile);
  if (name === nodesGroup) return place === 'O' && isNodeSigner(profile);
  return !isReservedName(profile.reserved, name) || profile.allowReserved.includes(name);
}

/** Deviation 9: `system:node:` must be followed by a valid name of a Node. */
export const nodeName: Rule = {
  check: 'the node name is one a Node can have',
  code: 'NameReserved',
  observed: ({ request }) => quoted(request.subject.commonName),
  applies: ({ request: { subject } }) => subject.commonName.startsWith(nodeUserPrefix),
  violations: ({ request: { subject } }) =>
    violationUnless(
      !subject.commonName.startsWith(nodeUserPrefix) || isSubdomain(subject.commonName.slice(nodeUserPrefix.length)),
      `common name ${quoted(subject.commonName)} does not name a node`,
    ),
};

export const commonNameAllowed: Rule = {
  check: 'the common name is one the profile allows',
  code: 'SubjectNotPermitted',
  observed: ({ request }) => quoted(request.subject.commonName),
  violations: ({ profile, request: { subject } }) =>
    subject.commonName === ''
      ? violationUnless(profile.subject.commonNameRequired !== true, 'a common name is required')
      : violationUnless(
          isAllowed(profile, 'commonNames', subject.commonName),
          `common name ${quoted(subject.commonName)} is not permitted`,
        ),
};

export const organizationsAllowed: Rule = {
  check: 'organizations are those the profile allows',
  code: 'SubjectNotPermitted',
  observed: ({ request }) => quotedList(request.subject.organizations),
  applies: ({ request: { subject } }) => subject.organizations.length > 0,
  violations: ({ profile, request: { subject } }) =>
    atMost(
      subject.organizations.filter((organization) => !isAllowed(profile, 'organizations', organization)),
      (organization) => `organization ${quoted(organization)} is not permitted`,
    ),
};

/** `namesNotReserved` decides about reserved names: patterns do not permit them, and a listed name needs no pattern. */
function isAllowed(profile: Profile, place: 'commonNames' | 'organizations', name: string): boolean {
  const patterns = profile.subject[place];
  return (
    patterns === undefined ||
    isReservedName(profile.reserved, name) ||
    patterns.some((pattern) => nameMatches(pattern, name))
  );
}

/** Deviation 12: a certificate without any name has no use (RFC 5280 §4.1.2.6). */
export const hasName: Rule = {
  check: 'the certificate has a name: a subject or a subjectAltName',
  code: 'SubjectNotPermitted',
  observed: ({ request: { subject, sans } }) =>
    `${hasSubject(subject) ? 'a subject' : 'no subject'}, ${hasNames(sans) ? 'subjectAltNames' : 'no subjectAltNames'}`,
  violations: ({ request: { subject, sans } }) =>
    violationUnless(
      hasSubject(subject) || hasNames(sans),
      'the certificate would have no name: it has neither a subject nor a subjectAltName',
    ),
};

/** The subject of the certificate; empty if the request has an emailAddress only. An empty SEQUENCE has two octets. */
function hasSubject(subject: Subject): boolean {
  return encodeSubject(subject).length > 2;
}

export function hasNames({ dns, email, ip, uri }: SubjectAltNames): boolean {
  return [dns, email, ip, uri].some((names) => names.length > 0);
}
