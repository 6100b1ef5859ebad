/**
 * What the linters may say, each only where the request itself is the cause: a signer that rewrote names or usages
 * would sign something else than was asked for and approved. Every entry was looked at; one that no longer occurs, or
 * occurs without its cause, fails the suite.
 */
import type { CertificateRequest } from '../../../../core/x509/model.ts';

/** A request as far as it can be a cause. */
export interface Asked {
  readonly request: CertificateRequest;
  readonly usages: readonly string[];
}

export interface Allowed {
  /** As `<tool> <lint>`. */
  readonly lint: string;
  readonly cause: string;
  readonly when: (asked: Asked) => boolean;
}

/** Either linter has its own rule, sometimes several, for the same cause. */
function causedBy(cause: string, when: Allowed['when'], ...lints: readonly string[]): Allowed[] {
  return lints.map((lint) => ({ lint, cause, when }));
}

const keyUsages: Allowed[] = [
  ...causedBy(
    'encipherment with an EC key (RFC 8813 §3)',
    ({ request, usages }) =>
      (request.publicKey.kind?.startsWith('P-') ?? false) &&
      usages.some((usage) => usage === 'key encipherment' || usage === 'data encipherment'),
    'zlint e_ecdsa_allowed_ku',
    'pkilint pkix.key_usage_value_prohibited_for_ec',
  ),
  ...causedBy(
    'anything but signatures with an Ed25519 key (RFC 9295 §3)',
    ({ request, usages }) => request.publicKey.kind === 'Ed25519' && usages.some((usage) => noSignature.has(usage)),
    'pkilint pkix.key_usage_value_prohibited_for_edwards_curve',
  ),
  ...causedBy(
    'key agreement with an RSA key (RFC 4055 §1.2)',
    ({ request, usages }) => request.publicKey.kind === 'RSA' && usages.includes('key agreement'),
    'pkilint pkix.key_usage_value_prohibited_for_rsa',
  ),
  ...causedBy(
    'anything but signatures and encipherment with an RSA key (RFC 3279 §2.3.1)',
    ({ request, usages }) => request.publicKey.kind === 'RSA' && usages.some((usage) => notWithRsa.has(usage)),
    'zlint e_rsa_allowed_ku_ee',
  ),
  ...causedBy(
    'both "encipher only" and "decipher only"',
    ({ usages }) => usages.includes('encipher only') && usages.includes('decipher only'),
    'pkilint pkix.both_encipheronly_and_decipheronly_ku_set',
  ),
  ...causedBy(
    'usages that RFC 5280 §4.2.1.12 does not join',
    ({ usages }) => !areConsistent(usages),
    'zlint e_key_usage_and_extended_key_usage_inconsistent',
  ),
  ...causedBy(
    'the usage "cert sign"',
    ({ usages }) => usages.includes('cert sign'),
    'zlint e_ext_key_usage_cert_sign_without_ca',
    'pkilint pkix.ee_certificate_keycertsign_keyusage_set',
  ),
  ...causedBy(
    'the usage "timestamping", whose extension RFC 3161 §2.3 wants critical',
    ({ usages }) => usages.includes('timestamping'),
    'pkilint pkix.extended_key_usage_extension_with_timestamping_not_critical',
  ),
];

const noSignature = new Set([
  'key encipherment',
  'data encipherment',
  'key agreement',
  'encipher only',
  'decipher only',
]);

const notWithRsa = new Set(['key agreement', 'cert sign', 'crl sign', 'encipher only', 'decipher only']);

/** Which key usages go with each extended one. */
const joined: ReadonlyMap<string, readonly string[]> = new Map([
  ['server auth', ['digital signature', 'signing', 'key encipherment', 'key agreement']],
  ['client auth', ['digital signature', 'signing', 'key agreement']],
  ['code signing', ['digital signature', 'signing']],
  ['email protection', ['digital signature', 'signing', 'content commitment', 'key encipherment', 'key agreement']],
  ['s/mime', ['digital signature', 'signing', 'content commitment', 'key encipherment', 'key agreement']],
  ['timestamping', ['digital signature', 'signing', 'content commitment']],
  ['ocsp signing', ['digital signature', 'signing', 'content commitment']],
]);

const keyUsageNames = new Set([
  'signing',
  'digital signature',
  'content commitment',
  'cert sign',
  'crl sign',
  ...noSignature,
]);

function areConsistent(usages: readonly string[]): boolean {
  const purposes = usages.filter((usage) => joined.has(usage));
  const keyUsage = usages.filter((usage) => keyUsageNames.has(usage));
  const enciphers = keyUsage.includes('key encipherment') && keyUsage.includes('key agreement');
  return !enciphers && purposes.every((purpose) => keyUsage.every((usage) => joined.get(purpose)?.includes(usage)));
}

/** Attributes the certificate keeps, with the upper bounds of RFC 5280 appendix A.1 (ub-…). */
const attributes = {
  '2.5.4.3': { bound: 64, lint: 'e_subject_common_name_max_length' },
  '2.5.4.5': { bound: 64, lint: undefined },
  '2.5.4.6': { bound: 2, lint: undefined },
  '2.5.4.7': { bound: 128, lint: 'e_subject_locality_name_max_length' },
  '2.5.4.8': { bound: 128, lint: 'e_subject_state_name_max_length' },
  '2.5.4.9': { bound: 128, lint: 'e_subject_street_address_max_length' },
  '2.5.4.10': { bound: 64, lint: 'e_subject_organization_name_max_length' },
  '2.5.4.11': { bound: 64, lint: 'e_subject_organizational_unit_name_max_length' },
  '2.5.4.17': { bound: 40, lint: undefined },
} as const;
type AttributeType = keyof typeof attributes;
const attributeTypes = Object.keys(attributes) as AttributeType[];
const country = '2.5.4.6';
const serialNumber = '2.5.4.5';

/** Of the common name and the serial number the last one sent, unless that is empty. */
function kept({ request: { subject } }: Asked, type: AttributeType): string[] {
  const values = subject.attributes.filter((attribute) => attribute.type === type).map(({ value }) => value);
  return type === '2.5.4.3' || type === serialNumber ? values.slice(-1).filter((value) => value !== '') : values;
}

function isTooLong(type: AttributeType): Allowed['when'] {
  return (asked) => kept(asked, type).some((value) => Array.from(value).length > attributes[type].bound);
}

const isPrintable = (value: string): boolean => /^[A-Za-z0-9 '()+,\-./:=?]+$/.test(value);

const subjects: Allowed[] = [
  ...attributeTypes.flatMap((type) => {
    const { lint } = attributes[type];
    return lint === undefined ? [] : causedBy(`${type} is longer than its bound`, isTooLong(type), `zlint ${lint}`);
  }),
  ...causedBy(
    'a subject attribute is longer than its bound',
    (asked) => attributeTypes.some((type) => isTooLong(type)(asked)),
    'pkilint itu.invalid_asn1_syntax',
  ),
  ...causedBy(
    'a subject attribute is empty',
    (asked) => attributeTypes.some((type) => kept(asked, type).includes('')),
    'zlint e_subject_printable_string_badalpha',
    'pkilint itu.invalid_asn1_syntax',
  ),
  ...causedBy(
    'two values of a subject attribute, which the reference writes as one RDN',
    (asked) => attributeTypes.some((type) => kept(asked, type).length > 1),
    'pkilint pkix.rdn_contains_duplicate_attribute_types',
  ),
  ...causedBy(
    'a country that is no two characters',
    (asked) => kept(asked, country).some((value) => value.length !== 2),
    'pkilint itu.invalid_asn1_syntax',
  ),
  ...causedBy(
    'a country that is no PrintableString',
    (asked) => kept(asked, country).some((value) => value !== '' && !isPrintable(value)),
    'zlint e_subject_dn_country_not_printable_string',
    'pkilint itu.invalid_asn1_syntax',
  ),
];

type NameType = 'dns' | 'email' | 'ip' | 'uri';

function hasName(type: NameType, is: (name: string) => boolean): Allowed['when'] {
  return ({ request }) => request.sans[type].some((name) => is(name));
}

const labelsOf = (name: string): string[] => name.split('.');
/** The label before the public suffix: of names with two labels the first. */
const hostName = /^([A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9][A-Za-z0-9_-]{0,61}[A-Za-z]$/;

const names: Allowed[] = [
  ...causedBy(
    'a DNS name that is no host name of several labels (a kubelet may well be called n1)',
    hasName('dns', (name) => !hostName.test(name)),
    'pkilint pkix.invalid_domain_name_syntax',
  ),
  ...causedBy(
    'an empty label in a DNS name',
    hasName('dns', (name) => labelsOf(name).includes('')),
    'zlint e_rfc_dnsname_empty_label',
  ),
  ...causedBy(
    'a label of more than 63 characters',
    hasName('dns', (name) => labelsOf(name).some((label) => label.length > 63)),
    'zlint e_rfc_dnsname_label_too_long',
  ),
  ...causedBy(
    'a DNS name of more than 253 characters',
    hasName('dns', (name) => name.length > 253),
    'zlint e_ext_san_dns_name_too_long',
    'pkilint pkix.dnsname_domain_name_too_long',
  ),
  ...causedBy(
    'an underscore in a DNS name',
    hasName('dns', (name) => name.includes('_')),
    'zlint e_rfc_dnsname_underscore_in_sld',
  ),
  ...causedBy(
    'a hyphen at the edge of a label',
    hasName('dns', (name) => labelsOf(name).some((label) => label.startsWith('-') || label.endsWith('-'))),
    'zlint e_rfc_dnsname_hyphen_in_sld',
  ),
  ...causedBy(
    'an email name that is no plain address',
    hasName('email', (name) => !/^[A-Za-z0-9+._-]+@([A-Za-z0-9-]+\.)+[A-Za-z]+$/.test(name)),
    'pkilint pkix.invalid_email_address_syntax',
  ),
  ...causedBy(
    'angle brackets around an email name',
    hasName('email', (name) => name.startsWith('<')),
    'zlint e_ext_san_rfc822_format_invalid',
  ),
  ...causedBy(
    'a URI with another scheme than http and https, the only ones of these that the linter knows',
    hasName('uri', (name) => !/^https?:/.test(name)),
    'pkilint pkix.invalid_uri_syntax',
  ),
  ...causedBy(
    'a URI without a host',
    hasName('uri', (name) => name.startsWith('file:///')),
    'zlint e_ext_san_uri_host_not_fqdn_or_ip',
  ),
];

export const allowed: readonly Allowed[] = [...keyUsages, ...subjects, ...names];
