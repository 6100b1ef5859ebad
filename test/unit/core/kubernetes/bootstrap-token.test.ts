import { describe, expect, test } from 'vitest';
import {
  detachedSignature,
  generateBootstrapToken,
  groupProblem,
  isSignedBy,
  parseBootstrapToken,
  secretOfToken,
  tokenOfSecret,
  usageProblem,
} from '../../../../core/kubernetes/bootstrap-token.ts';
import type { TokenRecord } from '../../../../core/kubernetes/bootstrap-token.ts';
import { failure, success } from '../../../../core/outcome/result.ts';

const token = { id: 'abcdef', secret: '0123456789abcdef' };

describe('the form of a token', () => {
  test('is kubeadm’s', () => {
    expect(parseBootstrapToken('abcdef.0123456789abcdef')).toEqual(success(token));
  });

  test.each([
    '',
    'abcdef',
    'abcdef.0123456789abcde',
    'abcdef.0123456789abcdef0',
    'ABCDEF.0123456789abcdef',
    'abcdef.0123456789ABCDEF',
    'abcdef:0123456789abcdef',
    ' abcdef.0123456789abcdef',
    'abcdef.0123456789abcdef\n',
  ])('%j is invalid, and is not repeated', (text) => {
    expect(parseBootstrapToken(text)).toEqual(
      failure(String.raw`the bootstrap token was not of the form "\A([a-z0-9]{6})\.([a-z0-9]{16})\z"`),
    );
  });

  test('is what comes of random bytes, all characters alike', () => {
    // Every byte once, of which four are not used: each of the 36 characters comes up exactly seven times.
    let next = 0;
    const bytes = (count: number) => Uint8Array.from({ length: count }, () => next++ % 256);
    const text = Array.from({ length: 126 }, () => generateBootstrapToken(bytes))
      .map(({ id, secret }) => id + secret)
      .join('');
    expect(parseBootstrapToken(`${text.slice(0, 6)}.${text.slice(6, 22)}`)).toMatchObject({ ok: true });
    const only = generateBootstrapToken((count) => new Uint8Array(count).fill(next++ % 2 === 0 ? 255 : 251));
    // 255 is above the last multiple of 36 and is passed over; 251 is the last character.
    expect(only).toEqual({ id: 'zzzzzz', secret: 'z'.repeat(16) });
  });
});

describe('the Secret', () => {
  const record: TokenRecord = {
    token,
    description: 'pool a',
    expires: Date.parse('2026-06-01T12:00:00.400Z'),
    usages: ['authentication', 'signing'],
    groups: ['system:bootstrappers:kubeadm:default-node-token'],
    owner: { kind: 'machine', namespace: 'default', name: 'worker-3' },
  };

  test('says what kubeadm’s says', () => {
    const { data, ...secret } = secretOfToken(record);
    const decoded = Object.fromEntries(
      Object.entries(data as Record<string, string>).map(([key, value]) => [key, atob(value)]),
    );
    expect(decoded).toEqual({
      'token-id': 'abcdef',
      'token-secret': '0123456789abcdef',
      description: 'pool a',
      expiration: '2026-06-01T12:00:00Z',
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
    });
    expect(secret).toMatchObject({
      type: 'bootstrap.kubernetes.io/token',
      metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
    });
  });

  test('is read back as it was written', () => {
    expect(tokenOfSecret(secretOfToken(record))).toEqual(
      success({ ...record, expires: Date.parse('2026-06-01T12:00:00Z') }),
    );
    const { expires: _, owner: __, ...forever } = record;
    expect(tokenOfSecret(secretOfToken(forever))).toEqual(success(forever));
  });

  const altered = (change: (secret: { metadata: Record<string, unknown>; data: Record<string, string> }) => void) => {
    const secret = structuredClone(secretOfToken(record)) as never;
    change(secret);
    return tokenOfSecret(secret);
  };
  test.each([
    [
      'another name',
      (s: never) => ((s as { metadata: { name: string } }).metadata.name = 'bootstrap-token-aaaaaa'),
      'is not of the form',
    ],
    ['another type', (s: never) => ((s as { type: string }).type = 'Opaque'), 'no Secret of type'],
    ['no id', (s: never) => delete (s as { data: Record<string, string> }).data['token-id'], 'has no token-id data'],
    ['no secret', (s: never) => delete (s as { data: Record<string, string> }).data['token-secret'], 'not of the form'],
    [
      'no date',
      (s: never) => ((s as { data: Record<string, string> }).data['expiration'] = btoa('soon')),
      "can't parse expiration",
    ],
  ])('with %s is refused', (_, change, words) => {
    expect(altered(change as never)).toEqual(failure(expect.stringContaining(words)));
  });
});

test('usages and groups are refused in kubeadm’s words', () => {
  expect(usageProblem(['signing', 'authentication'])).toBeUndefined();
  expect(usageProblem(['signing', 'sleeping'])).toBe(
    'invalid bootstrap token usage string: sleeping, valid usage options: signing,authentication',
  );
  expect(groupProblem(['system:bootstrappers:kubeadm:default-node-token'])).toBeUndefined();
  expect(groupProblem(['system:masters'])).toContain('bootstrap group "system:masters" is invalid');
  expect(groupProblem(['system:bootstrappers:a', 'system:bootstrappers:'])).toContain('is invalid');
});

describe('the detached signature', () => {
  // Against those of kube-controller-manager's bootstrapsigner: test/suites/control-plane/join.
  const content = 'apiVersion: v1\nkind: Config\n';
  const header = 'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9';
  const signature = detachedSignature(content, token);

  test('has the header of RFC 7515 appendix F and nothing in the middle', () => {
    expect(signature).toMatch(new RegExp(`^${header}\\.\\.[\\w-]{43}$`));
    expect(isSignedBy(token, content, signature)).toBe(true);
  });

  test.each([
    ['another content', content + ' ', signature],
    ['another key id', content, signature.replace(header, btoa('{"alg":"HS256","kid":"abcdeg"}').replace(/=+$/, ''))],
    ['no algorithm', content, `${btoa('{"alg":"none","kid":"abcdef"}').replace(/=+$/, '')}..`],
    ['a shorter signature', content, signature.slice(0, -1)],
    ['the payload in the middle', content, signature.replace('..', `.${Buffer.from(content).toString('base64url')}.`)],
    ['nothing', content, ''],
  ])('does not hold for %s', (_, text, given) => {
    expect(isSignedBy(token, text, given)).toBe(false);
  });

  test('does not hold for another secret', () => {
    expect(isSignedBy({ id: 'abcdef', secret: '0123456789abcdeg' }, content, signature)).toBe(false);
  });
});
