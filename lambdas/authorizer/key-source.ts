/**
 * The issuer's public keys: from the configuration, or fetched and cached. A token selects one of them by `kid` and cannot
 * supply its own.
 *
 * jose's createRemoteJWKSet is not used. It keeps keys for longer when the clock is set back, so a removed key would stay
 * valid; it waits for an unreachable issuer on every call; and it accepts a set that contains private keys.
 */
import { createLocalJWKSet, errors } from 'jose';
import type { CryptoKey, JSONWebKeySet, JWK } from 'jose';
import type { JwtAccess } from '../../core/configuration/model/deployment.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** The issuer's key set, not yet checked. */
export type FetchJwks = (issuer: string) => Promise<unknown>;

export interface KeyProblem {
  readonly reason:
    | 'KeyUnknown' // the set has no key with this kid and algorithm
    | 'KeysUnreachable' // the set could not be fetched
    | 'KeysUnusable'; // the set is malformed or contains private keys
  readonly detail?: string;
}

export type KeySource = (header: {
  readonly alg: string;
  readonly kid: string;
}) => Promise<Result<CryptoKey, KeyProblem>>;

/** A key that the issuer removes from the set stays valid for this long at most. */
const maxAgeMilliseconds = 600_000;
/** No fetch for an unknown `kid` this soon after the last fetch, since any caller can invent a `kid`. */
const unknownKidPauseMilliseconds = 30_000;
/** No fetch this soon after a failed one: otherwise every call would wait for a timeout. */
const failurePauseMilliseconds = 5_000;
const maxKeys = 64;

export function createKeySource(
  { issuer, jwks }: JwtAccess,
  ports: { readonly fetchJwks: FetchJwks; readonly now: () => Instant },
): KeySource {
  if (jwks !== undefined) {
    const configured = readKeySet(jwks);
    return async (header) => (configured === undefined ? unusable : selectKey(configured, header));
  }
  let lastFetch: { readonly at: Instant; readonly answer: Fetched } | undefined;

  async function refresh(): Promise<Fetched> {
    const at = ports.now();
    const answer = await fetchKeySet(() => ports.fetchJwks(issuer));
    lastFetch = { at, answer };
    return answer;
  }

  return async (header) => {
    const age = lastFetch === undefined ? Number.POSITIVE_INFINITY : ports.now() - lastFetch.at;
    // Negative if the clock was set back: then the age of the cached set is unknown.
    const cached = lastFetch !== undefined && age >= 0 ? lastFetch.answer : undefined;
    if (cached === undefined) return selectFrom(await refresh(), header);
    if (!cached.ok) return age < failurePauseMilliseconds ? cached : selectFrom(await refresh(), header);
    if (age >= maxAgeMilliseconds) return selectFrom(await refresh(), header);
    const found = await selectKey(cached.value, header);
    const mayBeNew = !found.ok && found.problem.reason === 'KeyUnknown' && age >= unknownKidPauseMilliseconds;
    return mayBeNew ? selectFrom(await refresh(), header) : found;
  };
}

type PublicKeys = ReturnType<typeof createLocalJWKSet>;
type Fetched = Result<PublicKeys, KeyProblem>;
const unusable = failure<KeyProblem>({ reason: 'KeysUnusable' });

async function fetchKeySet(fetchJwks: () => Promise<unknown>): Promise<Fetched> {
  let json: unknown;
  try {
    json = await fetchJwks();
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

async function selectFrom(fetched: Fetched, header: Parameters<KeySource>[0]): ReturnType<KeySource> {
  return fetched.ok ? selectKey(fetched.value, header) : fetched;
}

/** The key with this `kid` and algorithm. If the set has two, it is unusable. */
async function selectKey(set: PublicKeys, { alg, kid }: Parameters<KeySource>[0]): ReturnType<KeySource> {
  try {
    return success(await set({ alg, kid }));
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return failure({ reason: 'KeyUnknown' });
    return unusable;
  }
}
