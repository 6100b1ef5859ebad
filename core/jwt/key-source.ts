/**
 * The issuer's public keys: from the configuration, or fetched and cached. A token selects one of them by `kid` and cannot
 * supply its own.
 *
 * jose's createRemoteJWKSet is not used. It keeps keys for longer when the clock is set back, so a removed key would stay
 * valid; it waits for an unreachable issuer on every call; and it accepts a set that contains private keys.
 */
// Not 'jose': the functions must hold only what they use of it.
import { JWKSNoMatchingKey } from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';
import type { CryptoKey, JSONWebKeySet, JWK } from 'jose';
import type { Instant } from '../ports/instant.ts';
import { errorMessage } from '../outcome/error-message.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { KeyHeader } from './token-header.ts';

export interface KeyProblem {
  readonly reason:
    | 'KeyUnknown' // the set has no key with this kid and algorithm
    | 'KeysUnreachable' // the set could not be fetched
    | 'KeysUnusable'; // the set is malformed or contains private keys
  readonly detail?: string;
}

export type KeySource = (header: KeyHeader, now: Instant) => Promise<Result<CryptoKey, KeyProblem>>;

/** A key that the issuer removes from the set stays valid for this long at most. */
const maxAgeMilliseconds = 600_000;
/** No fetch for an unknown `kid` this soon after the last fetch, since any caller can invent a `kid`. */
const unknownKidPauseMilliseconds = 30_000;
/** No fetch this soon after a failed one: otherwise every call would wait for a timeout. */
const failurePauseMilliseconds = 5_000;
const maxKeys = 64;

/** Keys that are part of the configuration. */
export function configuredKeys(jwks: unknown): KeySource {
  const configured = readKeySet(jwks);
  return async (header) => (configured === undefined ? unusable : selectKey(configured, header));
}

/** `fetchKeySet`: the issuer's key set, not yet checked, in bounded time. Throws if it cannot be fetched. */
export function fetchedKeys(fetchKeySet: () => Promise<unknown>): KeySource {
  let lastFetch: { readonly at: Instant; readonly answer: Fetched } | undefined;

  async function refresh(at: Instant): Promise<Fetched> {
    const answer = await readFetched(fetchKeySet);
    lastFetch = { at, answer };
    return answer;
  }

  return async (header, now) => {
    const age = lastFetch === undefined ? Number.POSITIVE_INFINITY : now - lastFetch.at;
    // Negative if the clock was set back: then the age of the cached set is unknown.
    const cached = lastFetch !== undefined && age >= 0 ? lastFetch.answer : undefined;
    if (cached === undefined) return selectFrom(await refresh(now), header);
    if (!cached.ok) return age < failurePauseMilliseconds ? cached : selectFrom(await refresh(now), header);
    if (age >= maxAgeMilliseconds) return selectFrom(await refresh(now), header);
    const found = await selectKey(cached.value, header);
    const mayBeNew = !found.ok && found.problem.reason === 'KeyUnknown' && age >= unknownKidPauseMilliseconds;
    return mayBeNew ? selectFrom(await refresh(now), header) : found;
  };
}

type PublicKeys = ReturnType<typeof createLocalJWKSet>;
type Fetched = Result<PublicKeys, KeyProblem>;
const unusable = failure<KeyProblem>({ reason: 'KeysUnusable' });

async function readFetched(fetchKeySet: () => Promise<unknown>): Promise<Fetched> {
  let json: unknown;
  try {
    json = await fetchKeySet();
  } catch (error) {
    const detail = errorMessage(error).slice(0, 300);
    return failure({ reason: 'KeysUnreachable', detail });
  }
  const set = readKeySet(json);
  return set === undefined ? unusable : success(set);
}

/** Members that only a private or shared key has. RFC 7518 §6.2.2, §6.3.2, §6.4. */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

function readKeySet(json: unknown): PublicKeys | undefined {
  const keys: unknown = (json as { readonly keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > maxKeys) return undefined;
  // Any reader of a published private key can sign tokens, so the whole set is rejected.
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

async function selectFrom(fetched: Fetched, header: KeyHeader): Promise<Result<CryptoKey, KeyProblem>> {
  return fetched.ok ? selectKey(fetched.value, header) : fetched;
}

/** The key with this `kid` and algorithm. If the set has two, it is unusable. */
async function selectKey(set: PublicKeys, { alg, kid }: KeyHeader): Promise<Result<CryptoKey, KeyProblem>> {
  try {
    return success(await set({ alg, kid }));
  } catch (error) {
    if (error instanceof JWKSNoMatchingKey) return failure({ reason: 'KeyUnknown' });
    return unusable;
  }
}
