/**
 * Subjects: read from a request, and rebuilt for the certificate exactly as the in-tree signer rebuilds them (Go's
 * crypto/x509/pkix.Name: FillFromRDNSequence, ToRDNSequence), so that both sign the same name.
 */
import type { Subject, SubjectAttribute } from './model.ts';
import { isPrintable, objectIdentifier, printableString, sequence, setOf, utf8String } from '../encoding/der-writer.ts';
import { childrenOf, contentOf, derTag, isAscii, oidOf } from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { malformed, violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

const commonNameType = '2.5.4.3';
const serialNumberType = '2.5.4.5';
const organizationType = '2.5.4.10';

/**
 * The attributes that the certificate keeps, in its order: C, ST, L, street, postalCode, O, OU with all values, then CN and
 * serialNumber with the last value sent. All other types (emailAddress, DC, UID …) are dropped, as by the in-tree signer.
 */
const listTypes = ['2.5.4.6', '2.5.4.8', '2.5.4.7', '2.5.4.9', '2.5.4.17', organizationType, '2.5.4.11'];
const singleTypes = [commonNameType, serialNumberType];

/** Limits the cost of the rules: each organization is a group, which is compared with every pattern of a profile. */
const maxAttributes = 256;

/** Short names for messages (RFC 4514 §3 and the types above). */
const shortNames: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.17': 'postalCode',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};

/** Name ::= SEQUENCE OF SET OF SEQUENCE { type, value } (RFC 5280 §4.1.2.4). */
export function decodeSubject(name: DerElement): Result<Subject, Violations> {
  const rdns = childrenOf(name, derTag.sequence);
  if (rdns === undefined) return undecodable('is not a sequence of names');
  const attributes: SubjectAttribute[] = [];
  for (const rdn of rdns) {
    const pairs = childrenOf(rdn, derTag.set) ?? [];
    if (pairs.length === 0) return undecodable('has a part that is not a set of attributes');
    for (const pair of pairs) {
      const [type, value, ...more] = childrenOf(pair, derTag.sequence) ?? [];
      const dotted = oidOf(type);
      if (dotted === undefined || value === undefined || more.length > 0)
        return undecodable('has an attribute that is not a type and a value');
      const text = decodeString(value);
      if (text === undefined) return undecodable(`has a value of ${attributeName(dotted)} that is not a valid string`);
      // A control character can end, hide or move text where names are shown, logged or compared.
      if (hasControl(text)) return undecodable(`has a control character in ${attributeName(dotted)}`);
      const fault = identityTypes.has(dotted) ? lookalikeFault(text) : undefined;
      if (fault !== undefined) return undecodable(`has ${fault} ${attributeName(dotted)}`);
      attributes.push({ type: dotted, value: text });
      if (attributes.length > maxAttributes)
        return failure([violation('RequestTooLarge', `the subject has more than ${maxAttributes} attributes`)]);
    }
  }
  return success({
    attributes,
    commonName: valuesOf(attributes, commonNameType).at(-1) ?? '',
    organizations: valuesOf(attributes, organizationType),
  });
}

function undecodable(what: string): Result<never, Violations> {
  return malformed(`the subject ${what}`);
}

/** `CN` for 2.5.4.3; dotted if the type has no short name here. */
export function attributeName(type: string): string {
  return shortNames[type] ?? type;
}

function valuesOf(attributes: readonly SubjectAttribute[], type: string): readonly string[] {
  return attributes.filter((attribute) => attribute.type === type).map(({ value }) => value);
}

/** CN and O: the API server uses them as the user name and the groups. lookalikeFault checks only these. */
const identityTypes = new Set([commonNameType, organizationType]);

/**
 * Why a name can be mistaken for another one, such as `a hidden character in`; the message goes on with the attribute.
 * docs/signers.md, deviation 16: programs that compare names by RFC 5280 §7.1 drop such characters (RFC 4518 §2.2, §2.4, §2.6.1).
 * HTTP removes blanks at both ends of a header, so an aggregated API server reads `O=" system:masters"` as system:masters.
 */
export function lookalikeFault(name: string): string | undefined {
  // RFC 5280, Appendix A: at least one character.
  if (name === '') return 'an empty';
  if (hiddenCharacter.test(name)) return 'a hidden character in';
  if (name.startsWith(' ') || name.endsWith(' ')) return 'a blank at an end of';
  return undefined;
}

/**
 * Format characters and other characters without a shape (ZWNJ and ZWJ too, which some scripts and emoji use), private and
 * unassigned characters, U+FFFC, U+FFFD, and the blanks that look like a space.
 */
const hiddenCharacter = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufffc\ufffd]|(?! )\p{Zs}/u;

/** Unicode's category Cc: C0, DEL, C1. */
export function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/**
 * Decodes the string types that Go reads into a name (encoding/asn1), with Go's rules. Go drops other types silently, so a
 * request with another type is refused.
 */
function decodeString(value: DerElement): string | undefined {
  const content = Buffer.from(contentOf(value));
  const latin1 = content.toString('latin1');
  switch (value.tag) {
    case derTag.utf8String:
      return decodeUtf8(content);
    case derTag.printableString:
      // '*' and '&' are not PrintableString characters; Go takes both because they are common.
      return /^[A-Za-z0-9 '()+,\-./:=?*&]*$/.test(latin1) ? latin1 : undefined;
    case derTag.numericString:
      return /^[0-9 ]*$/.test(latin1) ? latin1 : undefined;
    case derTag.ia5String:
      return isAscii(content) ? latin1 : undefined;
    case derTag.teletexString:
      // T.61 by name, but all common programs write and read Latin-1.
      return latin1;
    case derTag.bmpString:
      return decodeBmp(content);
    default:
      return undefined;
  }
}

/** Buffer replaces invalid UTF-8 (also overlong forms and surrogates) by U+FFFD, so the text is encoded again and compared. */
function decodeUtf8(content: Buffer): string | undefined {
  const text = content.toString('utf8');
  return Buffer.from(text, 'utf8').equals(content) ? text : undefined;
}

/** UCS-2 (not UTF-16: no surrogates) without the noncharacters, as in Go. */
function decodeBmp(content: Buffer): string | undefined {
  if (content.length % 2 !== 0) return undefined;
  const text = Buffer.from(content).swap16().toString('utf16le');
  return /[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/.test(text) ? undefined : text;
}

/** The DER Name for the certificate: one RDN for each type, with all its values. */
export function encodeSubject({ attributes }: Pick<Subject, 'attributes'>): Uint8Array {
  const rdns: Uint8Array[] = [];
  for (const type of listTypes) {
    const values = valuesOf(attributes, type);
    if (values.length > 0) rdns.push(encodeRdn(type, values));
  }
  for (const type of singleTypes) {
    const value = valuesOf(attributes, type).at(-1) ?? '';
    if (value !== '') rdns.push(encodeRdn(type, [value]));
  }
  return sequence(...rdns);
}

function encodeRdn(type: string, values: readonly string[]): Uint8Array {
  // PrintableString where its characters suffice, otherwise UTF8String, as in Go and RFC 5280 §4.1.2.4.
  const encoded = values.map((value) => (isPrintable(value) ? printableString(value) : utf8String(value)));
  return setOf(...encoded.map((value) => sequence(objectIdentifier(type), value)));
}

/** Text for messages, in the order of the attributes: `O=system:nodes, CN=system:node:n1`, escaped as in RFC 4514 §2.4. */
export function subjectText({ attributes }: Subject): string {
  const escaped = (value: string): string => value.replace(/["+,;<>\\]|^[ #]| $/g, '\\$&');
  return attributes.map(({ type, value }) => `${attributeName(type)}=${escaped(value)}`).join(', ');
}
