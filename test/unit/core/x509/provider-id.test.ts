/** The provider ID extension of a request: it is compared with what a provider proves, so only one form of it counts. */
import { describe, expect, test } from 'vitest';
import { decodeRequest, providerIdType } from '../../../../core/x509/certificate-request.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';

const id = 'aws:///eu-central-1a/i-0123456789abcdef0';

function read(value: Uint8Array): string | undefined {
  const decoded = decodeRequest(
    makeRequest({ subject: { CN: 'n1' }, extensions: [{ oid: providerIdType, value }] }).bytes,
  );
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.problem));
  return decoded.value.providerId;
}

describe('the provider ID extension', () => {
  test('a UTF8String of ASCII is read', () => {
    expect(read(der.utf8(id))).toBe(id);
  });

  test.each<[string, Uint8Array]>([
    ['a string of another type', der.printable(id)],
    ['octets', der.octets(Buffer.from(id))],
    ['no DER', Buffer.from(id)],
    ['nothing', Buffer.alloc(0)],
    ['text outside ASCII', der.utf8(`${id}é`)],
    ['one element and another', Buffer.concat([der.utf8(id), der.utf8(id)])],
  ])('%s counts as no provider ID', (_, value) => {
    expect(read(value)).toBeUndefined();
  });
});
