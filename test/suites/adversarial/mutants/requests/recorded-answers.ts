/**
 * Mistakes in the rules and in the certificate. The recorded answers of kube-controller-manager, and the cases of our
 * deviations, must catch each of them.
 */
import { changesOf } from '../../../../harness/mutants/mutant.ts';
import type { Change } from '../../../../harness/mutants/mutant.ts';
import type { Subject } from '../../../../harness/mutants/subject.ts';

/** In the rules. */
const ruleChanges: readonly Change[] = [
  ...changesOf(
    'core/policy/general-rules.ts',
    ['RSA keys may be short', 'publicKey.bits >= 2048', 'publicKey.bits >= 1024'],
    ['any kind of key will do', 'publicKey.kind !== undefined && profile.keys.includes(publicKey.kind)', 'true'],
    ['SHA-1 is as good as SHA-256', "['SHA-256', 'SHA-384', 'SHA-512'].includes(hash)", "hash !== 'MD5'"],
    ['names of other types are dropped in silence', 'atMost(request.sans.unsupported,', 'atMost([],'],
    [
      'no usages are as good as any',
      "violationUnless(usages.length > 0, 'usages are empty')",
      "violationUnless(true, '')",
    ],
  ),
  ...changesOf(
    'core/policy/check-profile.ts',
    ['kube-apiserver-client has no in-tree rules', '[...apiServerClientInTree, ', '['],
    ['kubelet-serving is never the default', 'if (passes(kubeletServingInTree))', 'if (false)'],
  ),
  ...changesOf(
    'core/policy/subject-rules.ts',
    [
      'any reserved name is given',
      'return !isReservedName(profile.reserved, name) || profile.allowReserved.includes(name);',
      'return true;',
    ],
    ['any signer gives names of nodes', "return place === 'CN' && isNodeSigner(profile);", "return place === 'CN';"],
    [
      'a node may be called anything',
      '!subject.commonName.startsWith(nodeUserPrefix) || isSubdomain',
      'true || isSubdomain',
    ],
    ['a certificate may have no name at all', 'hasSubject(subject) || hasNames(sans),', 'true,'],
  ),
  ...changesOf(
    'core/policy/reserved-names.ts',
    ['letter case makes another name', ".normalize('NFKC').toLowerCase()", ".normalize('NFKC')"],
    ['full-width letters make another name', "name.normalize('NFKC')", 'name'],
    [
      'only system: names are reserved',
      'return controlPlaneNames.some(isMatch) || names.some(isMatch);',
      "return isMatch('system:*') || names.some(isMatch);",
    ],
  ),
  ...changesOf(
    'core/policy/serving-rules.ts',
    ['kubelets serve under wildcards', "if (name.includes('*')) return 'is a wildcard';", ''],
    ['kubelets serve under names of services', "  '*.svc',\n", ''],
    ['kubelets serve under loopback', '[...neverAddresses, ...addresses]', '[...addresses]'],
    [
      'a DNS name may read as an address',
      "return readsAsAddress(name) ? 'reads as an address' : undefined;",
      'return undefined;',
    ],
  ),
  ...changesOf('core/x509/subject-alt-names.ts', [
    'there may be any number of names',
    'if (names.length > maxSubjectAltNames)',
    'if (names.length > 100_000)',
  ]),
  ...changesOf(
    'core/policy/in-tree-rules.ts',
    ['further organizations pass', 'subject.organizations.length === 1 && ', ''],
    [
      'the case of the common name does not count',
      'request.subject.commonName.startsWith(nodeUserPrefix)',
      'request.subject.commonName.toLowerCase().startsWith(nodeUserPrefix)',
    ],
    ['an IP address is not enough', 'sans.dns.length > 0 || sans.ip.length > 0', 'sans.dns.length > 0'],
    ['key encipherment is mandatory', " || usage === 'key encipherment')", ')'],
    ['further usages pass', 'const exact = complete && ', 'const exact = complete || '],
    ['client auth may be missing', "violationUnless(usages.includes('client auth'),", 'violationUnless(true,'],
    ['two rules change places', '  noEmail,\n  noIp,\n', '  noIp,\n  noEmail,\n'],
    ['a message has other words', 'DNS or IP subjectAltName is required', 'DNS or IP subjectAltNames are required'],
  ),
];

/** In what the certificate is made of. */
const certificateChanges: readonly Change[] = [
  ...changesOf(
    'core/x509/leaf-certificate.ts',
    [
      'names of a certificate without subject are not critical',
      'extensionType.subjectAltName, subjectIsEmpty,',
      'extensionType.subjectAltName, false,',
    ],
    ['extended usages are critical', 'extensionType.extKeyUsage, false,', 'extensionType.extKeyUsage, true,'],
    [
      'extended usages keep the order asked for',
      'Object.entries<UsageMeaning>(usageTable)',
      'usages.map((usage) => [usage, usageTable[usage as never] as UsageMeaning] as const)',
    ],
    [
      'the authority key identifier is missing',
      'keyId === undefined ? undefined : authorityKeyIdentifierExtension(keyId)',
      'undefined',
    ],
  ),
  ...changesOf('core/x509/check-issued.ts', [
    'what was made is not looked at',
    'const issuer = issuerOf(authority);',
    'const issuer = issuerOf(authority);\n  if (der.length > 0) return [];',
  ]),
  ...changesOf(
    'core/x509/tbs-certificate.ts',
    ['key usage bits end anywhere', 'bitString(octets, 7 - (highest & 7))', 'bitString(octets)'],
    ['key usage is not critical', '(extensionType.keyUsage, true,', '(extensionType.keyUsage, false,'],
    [
      'every leaf is a CA',
      'sequence(...(ca === undefined ? [] : [booleanTrue]), ...pathLength)',
      'sequence(booleanTrue, ...pathLength)',
    ],
    ['the key identifier is of another hash', "hash('sha256', key,", "hash('sha1', key,"],
  ),
  ...changesOf(
    'core/x509/distinguished-name.ts',
    ['the subject has another order', "'2.5.4.6', '2.5.4.8', '2.5.4.7'", "'2.5.4.6', '2.5.4.7', '2.5.4.8'"],
    [
      'the first common name counts',
      "const value = valuesOf(attributes, type).at(-1) ?? '';",
      "const value = valuesOf(attributes, type).at(0) ?? '';",
    ],
    [
      'policy sees another common name than the certificate',
      'commonName: valuesOf(attributes, commonNameType).at(-1)',
      'commonName: valuesOf(attributes, commonNameType).at(0)',
    ],
    ['control characters pass', '/\\p{Cc}/u.test(text)', 'false'],
    ['hidden characters pass', "if (hiddenCharacter.test(name)) return 'a hidden character in';", ''],
    ['blanks at the ends pass', "if (name.startsWith(' ') || name.endsWith(' ')) return 'a blank at an end of';", ''],
    ['an empty name passes', "if (name === '') return 'an empty';", ''],
  ),
  ...changesOf(
    'core/x509/subject-alt-names.ts',
    [
      'mail names come first',
      '    ...dns.map((name) => implicit(dnsTag, text(name))),\n    ...email.map((name) => implicit(emailTag, text(name))),\n',
      '    ...email.map((name) => implicit(emailTag, text(name))),\n    ...dns.map((name) => implicit(dnsTag, text(name))),\n',
    ],
    ['an IPv4 address in IPv6 form stays one', 'octets[10] === 0xff && octets[11] === 0xff', 'octets[10] === 0xfe'],
    ['any text is a DNS name', '/^[A-Za-z0-9._*-]+$/.test(name)', 'true'],
    [
      'an empty DNS name passes',
      "if (name === '') return 'has a DNS name that is empty';",
      "if (name === '') return undefined;",
    ],
    ['any text is a URI', 'const match = uriPattern.exec(uri);', 'const match = /(?:)/.exec(uri);'],
  ),
  ...changesOf(
    'core/encoding/der-writer.ts',
    ['an asterisk is a PrintableString character', ',\\-./:=?]*$/', ',\\-./:=?*]*$/'],
    ['a SET OF keeps its order', '[...parts].sort((a, b) => Buffer.compare(a, b))', '[...parts]'],
    ['years after 2049 have two digits', 'year < 2050', 'year < 2150'],
    ['128 octets have a short length', 'length < 0x80 ? 0', 'length <= 0x80 ? 0'],
  ),
  ...changesOf(
    'core/x509/key-usages.ts',
    ['"signing" is another bit', 'signing: { keyUsageBit: 0 }', 'signing: { keyUsageBit: 1 }'],
    [
      '"s/mime" is another purpose',
      "'s/mime': { extKeyUsage: '1.3.6.1.5.5.7.3.4' }",
      "'s/mime': { extKeyUsage: '1.3.6.1.5.5.7.3.8' }",
    ],
  ),
  ...changesOf(
    'core/x509/validity.ts',
    ['eight hours are short', 'ttl < shortLifetimeSeconds ?', 'ttl <= shortLifetimeSeconds ?'],
    ['certificates start now', 'const backdatingSeconds = 5 * 60;', 'const backdatingSeconds = 0;'],
    ['leaves outlive their CA', 'Math.min(end * 1000, caNotAfter)', 'end * 1000'],
    [
      'a certificate is valid for as long as the request asks',
      'Math.min(maxTtlSeconds, Math.max(minLifetimeSeconds, expirationSeconds ?? maxTtlSeconds))',
      'Math.max(minLifetimeSeconds, expirationSeconds ?? maxTtlSeconds)',
    ],
  ),
];

export const subject: Subject = {
  module: import.meta.filename,
  changes: [...ruleChanges, ...certificateChanges],
  cases: ['test/suites/adversarial/mutants/requests/recorded-answers-cases.ts'],
};
