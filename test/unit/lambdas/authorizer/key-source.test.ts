import { expect, test } from 'vitest';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { AuthorizerLogEntry } from '../../../../lambdas/authorizer/authorizer.ts';
import { access, eventOf } from './case.ts';
import { cluster, ecKey, issuer, jwkOf, makeToken, now, rsaKey, strangerKey, subject } from './tokens.ts';

/** An issuer that is asked, on a clock that is set. */
function world(first: () => unknown) {
  let time = now;
  let answer = first;
  const asked: string[] = [];
  const log: AuthorizerLogEntry[] = [];
  const { jwks: _given, ...jwt } = access.jwt;
  const authorizer = createAuthorizer(
    { cluster, jwt },
    {
      now: () => time,
      fetchJwks: async (from) => {
        asked.push(from);
        await Promise.resolve();
        return answer();
      },
      log: (entry) => log.push(entry),
    },
  );
  return {
    asked,
    log,
    pass: (seconds: number) => (time += seconds * 1_000),
    publish: (next: () => unknown) => (answer = next),
    /** A token of then. */
    ask: async (key = rsaKey) => {
      const at = time / 1_000;
      const token = makeToken({ key, claims: { iat: at, nbf: at, exp: at + 600 } });
      const { isAuthorized } = await authorizer(eventOf(token));
      return isAuthorized ? 'in' : log.at(-1)?.reason;
    },
  };
}

const both = () => ({ keys: [jwkOf(rsaKey), jwkOf(ecKey)] });
const onlyEc = () => ({ keys: [jwkOf(ecKey)] });
const away = () => {
  throw new Error('connect ECONNREFUSED');
};

test('asks the issuer once for many callers', async () => {
  const { ask, asked, pass } = world(both);
  for (let i = 0; i < 20; i += 1) {
    expect(await ask(i % 2 === 0 ? rsaKey : ecKey)).toBe('in');
    pass(10);
  }
  expect(asked).toEqual([issuer]);
});

test('a key that was taken out stops working after ten minutes at most', async () => {
  const { ask, asked, pass, publish } = world(both);
  expect(await ask()).toBe('in');
  publish(onlyEc);
  pass(599);
  expect(await ask()).toBe('in');
  pass(1);
  expect(await ask()).toBe('KeyUnknown');
  expect(asked).toHaveLength(2);
});

test('a new key works as soon as half a minute has passed since the last look', async () => {
  const { ask, asked, pass, publish } = world(onlyEc);
  expect(await ask()).toBe('KeyUnknown');
  publish(both);
  pass(29);
  expect(await ask()).toBe('KeyUnknown');
  expect(asked).toHaveLength(1);
  pass(1);
  expect(await ask()).toBe('in');
  expect(asked).toHaveLength(2);
});

test('made-up names are asked for twice a minute, and known keys meanwhile work', async () => {
  const { ask, asked, pass } = world(both);
  for (let second = 0; second < 120; second += 1) {
    expect(await ask(strangerKey)).toBe('KeyUnknown');
    expect(await ask()).toBe('in');
    pass(1);
  }
  expect(asked).toHaveLength(4);
});

test('while an issuer is unreachable every caller is refused; it is asked again every five seconds, and then believed', async () => {
  const { ask, asked, log, pass, publish } = world(away);
  expect(await ask()).toBe('KeysUnreachable');
  expect(log[0]).toMatchObject({ level: 'warn', authorized: false, detail: 'connect ECONNREFUSED' });
  publish(both);
  pass(4);
  expect(await ask()).toBe('KeysUnreachable');
  expect(asked).toHaveLength(1);
  pass(1);
  expect(await ask()).toBe('in');
  expect(log.at(-1)?.subject).toBe(subject);
});

test('keys of an issuer that has gone away are not used for longer', async () => {
  const { ask, pass, publish } = world(both);
  expect(await ask()).toBe('in');
  publish(away);
  pass(600);
  expect(await ask()).toBe('KeysUnreachable');
  pass(5);
  expect(await ask()).toBe('KeysUnreachable');
});

test('a clock that was set back does not keep keys for longer', async () => {
  const { ask, asked, pass } = world(both);
  await ask();
  pass(-3_600);
  expect(await ask()).toBe('in');
  expect(asked).toHaveLength(2);
});

test.each([
  ['nothing', undefined],
  ['a page', '<html>'],
  ['no keys', {}],
  ['an empty list', { keys: [] }],
  ['keys by name', { keys: { rsa: jwkOf(rsaKey) } }],
  ['too many', { keys: Array.from({ length: 65 }, (_, i) => ({ ...jwkOf(rsaKey), kid: `k${i}` })) }],
  ['a private key among them', { keys: [jwkOf(rsaKey), ecKey.privateKey.export({ format: 'jwk' })] }],
])('an issuer that publishes %s: every caller is refused', async (_, published) => {
  const { ask, log } = world(() => published);
  expect(await ask()).toBe('KeysUnusable');
  expect(log[0]?.level).toBe('error');
});

test('keys of kinds we know nothing of do not spoil the set', async () => {
  const { ask } = world(() => ({ keys: [{ kty: 'OKP', crv: 'Ed25519', kid: 'new', x: 'AA' }, ...both().keys] }));
  expect(await ask()).toBe('in');
});
