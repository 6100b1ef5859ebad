import { createHash, X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import {
  checkCredential,
  nodeSubject,
  noNames,
  renewalMoment,
} from '../../../../kubelet-authenticator/files/check-credential.ts';
import {
  createTestAuthority,
  clientExtensions,
  type KeyAndCertificate,
  type TestAuthority,
} from '../../../harness/x509/test-certificates.ts';

const hour = 3_600_000;

describe('a certificate out of the cache', () => {
  let authority: TestAuthority;
  let other: TestAuthority;
  let good: KeyAndCertificate;
  let another: KeyAndCertificate;
  beforeAll(async () => {
    [authority, other] = [await createTestAuthority('ca'), await createTestAuthority('ca')];
    const subject = [{ O: ['system:nodes'] }, { CN: ['system:node:n1'] }];
    good = await authority.issue({ subject, extensions: clientExtensions() });
    another = await authority.issue({ subject, extensions: clientExtensions() });
  });
  const issuers = (...from: readonly TestAuthority[]) =>
    from.map(({ certificatePem }) => new X509Certificate(certificatePem));
  const check = (change: Partial<KeyAndCertificate> = {}, expected: object = {}) =>
    checkCredential(
      { ...good, ...change, issuedAt: undefined },
      { subject: nodeSubject('n1'), now: Date.now(), issuers: issuers(authority), names: noNames, ...expected },
    );

  test('is good', () => {
    expect(check()).toMatchObject({ ok: true });
    expect(check({}, { issuers: undefined })).toMatchObject({ ok: true });
    expect(check({}, { issuers: issuers(other, authority) })).toMatchObject({ ok: true });
  });

  test('is no use, and why', () => {
    const problem = (change: Partial<KeyAndCertificate>, expected: object = {}) => {
      const checked = check(change, expected);
      return checked.ok ? 'good' : checked.problem.why;
    };
    expect(problem({ keyPem: another.keyPem })).toBe('holds a key that is not that of its certificate');
    expect(problem({ keyPem: 'no key' })).toBe('cannot be read');
    expect(problem({ certificatePem: good.certificatePem.replace(/[A-Za-z]{8}/, 'AAAAAAAA') })).not.toBe('good');
    expect(problem({ certificatePem: '' })).not.toBe('good');
    expect(problem({}, { subject: nodeSubject('n2') })).toBe('is for O=system:nodes, CN=system:node:n1');
    expect(problem({}, { now: Date.now() + 25 * hour })).toMatch(/^expired at /);
    expect(problem({}, { now: Date.now() - 2 * hour })).toMatch(/check the clock of this machine/);
    // Of the same name, with another key.
    expect(problem({}, { issuers: issuers(other) })).toBe('was issued by CN=ca, which is not in the client CA bundle');
    expect(problem({}, { issuers: [] })).toMatch(/not in the client CA bundle/);
    expect(problem({}, { names: { ip: ['10.0.0.1'], dns: ['n1'] } })).toBe('lacks the names 10.0.0.1, n1');
    // A leaf is no issuer.
    expect(problem({}, { issuers: [new X509Certificate(another.certificatePem)] })).toMatch(
      /not in the client CA bundle/,
    );
  });

  test('the key is returned only if the machine can be registered with it', () => {
    expect(check({}, { now: Date.now() + 25 * hour })).toMatchObject({ problem: { keyPem: good.keyPem } });
    expect(check({}, { subject: nodeSubject('n2') })).toMatchObject({ ok: false, problem: { keyPem: undefined } });
    expect(check({ keyPem: another.keyPem })).toMatchObject({ ok: false, problem: { keyPem: undefined } });
  });
});

describe('the renewal moment', () => {
  const leaf = (seed: string) => ({ raw: createHash('sha256').update(seed).digest() }) as unknown as X509Certificate;
  const stored = { certificatePem: '', keyPem: '' };
  const share = (seed: string, notBefore: number, issuedAt: number | undefined, notAfter: number) => {
    const moment = renewalMoment({ ...stored, leaf: leaf(seed), notBefore, notAfter, issuedAt });
    return (moment - (issuedAt ?? notBefore)) / (notAfter - (issuedAt ?? notBefore));
  };

  test('is 70 to 80 % of the way from the issue, spread, and always the same for one certificate', () => {
    const shares = Array.from({ length: 500 }, (_, seed) => share(String(seed), 0, 300_000, 900_000));
    for (const each of shares) expect(each).toBeGreaterThanOrEqual(0.7 - 1e-5);
    for (const each of shares) expect(each).toBeLessThanOrEqual(0.8);
    expect(Math.max(...shares) - Math.min(...shares)).toBeGreaterThan(0.09);
    expect(share('x', 0, 300_000, 900_000)).toBe(share('x', 0, 300_000, 900_000));
  });

  test.each([undefined, -1, 0, 900_000, 1e15])(
    'counts from notBefore where the note of the issue cannot be (%s)',
    (issuedAt) => {
      const moment = renewalMoment({ ...stored, leaf: leaf('x'), notBefore: 0, notAfter: 900_000, issuedAt });
      expect(moment / 900_000).toBeGreaterThanOrEqual(0.7);
      expect(moment / 900_000).toBeLessThanOrEqual(0.8);
    },
  );

  test('leaves 72 hours and more to the end of a certificate of the default lifetime', () => {
    const yaml =
      'version: 1\nclusters: { c: { cas: { ca: { subject: { commonName: c } } }, profiles: { kubernetes.io/kube-apiserver-client-kubelet: {} } } }';
    const parsed = parseConfiguration(yaml, 'countersign.yaml');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const [profile] = parsed.value.configuration.clusters.get('c')!.profiles.values();
    expect(0.2 * profile!.maxTtlSeconds * 1_000).toBeGreaterThanOrEqual(72 * hour);
  });
});
