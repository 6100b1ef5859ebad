/**
 * The issuer's public keys: given in the configuration, or fetched and kept for a while. A token chooses among them by
 * `kid` and cannot bring its own.
 */
import { createLocalJWKSet, errors } from 'jose';
import type { CryptoKey, JSONWebKeySet, JWK } from 'jose';
import type { JwtAccess } from '../../core/configuration/model/deployment.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** What the issuer published; looked at before it is believed. */
export type FetchJwks = (issuer: string) => Promise<unknown>;

export type KeyAnswer =
  | { readonly ok: true; readonly key: CryptoKey }
  | {
      readonly ok: false;
      readonly reason:
        | 'KeyUnknown' // no key of that kid and algorithm
        | 'KeysUnreachable' // they could not be fetched
        | 'KeysUnusable'; // they were, and are no set to trust
      readonly detail?: string;
    };

export type KeySource = (header: { readonly alg: string; readonly kid: string }) => Promise<KeyAnswer>;

/** A key taken out of the set stops working after this long at most. */
const keepMilliseconds = 600_000;
/** Between two fetches for a `kid` nobody has seen: anybody can make those up. */
const unknownKidMilliseconds = 30_000;
/** Between two fetches after one that failed: callers must not wait for each other's timeouts in a row. */
const failureMilliseconds = 5_000;
const maxKeys = 64;

export function createKeySource(
  { issuer, jwks }: JwtAccess,
  ports: { readonly fetchJwks: FetchJwks; readonly now: () => Instant },
): KeySource {
  if (jwks !== undefined) {
    const given = readKeySet(jwks);
    return async (header) => (given === undefined ? unusable : pick(given, header));
  }
  let last: { readonly at: Instant; readonly answer: Fetched } | undefined;

  async function refresh(): Promise<Fetched> {
    const at = ports.now();
    const answer = await fetchKeySet(() => ports.fetchJwks(issuer));
    last = { at, answer };
    return answer;
  }

  return async (header) => {
    const age = last === undefined ? Number.POSITIVE_INFINITY : ports.now() - last.at;
    // A clock that was set back makes it negative: what is kept then has no known age.
    const kept = last !== undefined && age >= 0 ? last.answer : undefined;
    if (kept === undefined) return pickFrom(await refresh(), header);
    if (!kept.ok) return age < failureMilliseconds ? kept : pickFrom(await refresh(), header);
    if (age >= keepMilliseconds) return pickFrom(await refresh(), header);
    const found = await pick(kept.set, header);
    const mayBeNew = !found.ok && found.reason === 'KeyUnknown' && age >= unknownKidMilliseconds;
    return mayBeNew ? pickFrom(await refresh(), header) : found;
  };
}

type PublicKeys = ReturnType<typeof createLocalJWKSet>;
type Fetched = { readonly ok: true; readonly set: PublicKeys } | (KeyAnswer & { readonly ok: false });
const unusable = { ok: false, reason: 'KeysUnusable' } as const;

async function fetchKeySet(fetchJwks: () => Promise<unknown>): Promise<Fetched> {
  let json: unknown;
  try {
    json = await fetchJwks();
  } catch (error) {
    const detail = errorMessage(error).slice(0, 300);
    return { ok: false, reason: 'KeysUnreachable', detail };
  }
  const set = readKeySet(json);
  return set === undefined ? unusable : { ok: true, set };
}

/** Members that only a private or shared key has. RFC 7518 §6.2.2, §6.3.2, §6.4. */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

function readKeySet(json: unknown): PublicKeys | undefined {
  const keys: unknown = (json as { readonly keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > maxKeys) return undefined;
  // An issuer that shows a private key has told everybody how to make tokens: none of its keys is worth anything.
  const exposed = (keys as readonly unknown[]).some(
    (key) => typeof key !== 'object' || key === null || secretMembers.some((member) => member in key),
  );
  if (exposed) return undefined;
  const set: JSONWebKeySet = { keys: keys as JWK[] };
  try {
    return createLocalJWKSet(set);
  } catch {
    return undefined;
  }
}

async function pickFrom(fetched: Fetched, header: Parameters<KeySource>[0]): Promise<KeyAnswer> {
  return fetched.ok ? pick(fetched.set, header) : fetched;
}

/** The one key of that `kid` that is made for that algorithm; two of them are none. */
async function pick(set: PublicKeys, { alg, kid }: Parameters<KeySource>[0]): Promise<KeyAnswer> {
  try {
    return { ok: true, key: await set({ alg, kid }) };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return { ok: false, reason: 'KeyUnknown' };
    return unusable;
  }
}
