import { describe, expect, test } from 'vitest';
import { decodeRequestObject } from '../../../../core/kubernetes/certificate-signing-request.ts';
import { failure } from '../../../../core/outcome/result.ts';

function objectWith(metadata: Readonly<Record<string, unknown>>): unknown {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', uid: '0b4c0f2e-6a55-4b1e-9a53-2f1f2ad7b0aa', ...metadata },
    spec: { signerName: 'kubernetes.io/kubelet-serving', request: 'AAAA', usages: ['server auth'] },
  };
}

/** Names the API server stores (path.IsValidPathSegmentName): an approved request of any of them must get an answer. */
describe('object names', () => {
  test.each(['csr-1', 'CSR_1_', 'with a space', 'name:of:node', 'ü', '...', 'a'.repeat(500)])('%j is read', (name) => {
    const decoded = decodeRequestObject(objectWith({ name }));
    expect(decoded.ok && decoded.value.name).toBe(name);
  });

  test.each(['', '.', '..', 'a/b', 'a%2f', 'a'.repeat(1025), 7, null, undefined])('%j is not', (name) => {
    expect(decodeRequestObject(objectWith({ name }))).toEqual(failure({ message: 'metadata.name is not a name' }));
  });
});

/** A UID keys the record that keeps a request from being signed twice. */
test.each(['', 'a#b', 'a/b', 'a b', 'ü', '-a', 'a'.repeat(254), 7, null, undefined])('UID %j is refused', (uid) => {
  expect(decodeRequestObject(objectWith({ uid }))).toEqual(failure({ message: 'metadata.uid is not a UID' }));
});

describe.each(['groups', 'usages'])('spec.%s', (field) => {
  const withEntries = (count: number): unknown => {
    const { spec, ...rest } = objectWith({}) as { spec: object };
    return { ...rest, spec: { ...spec, [field]: Array.from({ length: count }, () => 'a') } };
  };

  test('finding 6: has at most 1 024 entries; more is too large, which is a refusal', () => {
    expect(decodeRequestObject(withEntries(1_024))).toMatchObject({ ok: true });
    expect(decodeRequestObject(withEntries(1_025))).toEqual(
      failure({ tooLarge: true, message: `spec.${field} has more than 1024 entries` }),
    );
  });
});
