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
import { errorMessage } from '../../core/outcome/error-message.ts';

/** The issuer's key set, not yet checked. */
export type FetchJwks = (issuer: string) => Promise<unknown>;

export type KeyAnswer =
  | { readonly ok: true; readonly key: CryptoKey }
  | {
      readonly ok: false;
      readonly reason:
        | 'KeyUnknown' // the set has no key with this kid and algorithm
        | 'KeysUnreachable' // the set could not be fetched
        | 'KeysUnusable'; // the set is malformed or contains private keys
      readonly detail?: string;
    };

export type KeySource = (header: { readonly alg: string; readonly kid: string }) => Promise<KeyAnswer>;

/** A key that the issuer removes from the set stays valid for this long at most. */
const keepMilliseconds = 600_000;
/** At least this long between fetches for an unknown `kid`, since any caller can invent one. */
const unknownKidMilliseconds = 30_000;
/** At least this long after a failed fetch: otherwise every call would wait for another timeout. */
const failureMilliseconds = 5_000;
const maxKeys = 64;

export function createKeySource(
  { issuer, jwks }: JwtAccess,
  ports: { readonly fetchJwks: FetchJwks; readonly now: () => Instant },
): KeySource {
  if (jwks !== undefined) {
    const configured = readKeySet(jwks);
    return async (header) => (configured === undefined ? unusable : pick(configured, header));
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
    // Negative if the clock was set back: then the age of the cached set is unknown.
    const cached = last !== undefined && age >= 0 ? last.answer : undefined;
    if (cached === undefined) return pickFrom(await refresh(), header);
    if (!cached.ok) return age < failureMilliseconds ? cached : pickFrom(await refresh(), header);
    if (age >= keepMilliseconds) return pickFrom(await refresh(), header);
    const found = await pick(cached.set, header);
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
  // With a published private key anyone can sign tokens, so the whole set is rejected.
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

/** The only key with this `kid` for this algorithm. Two such keys are an error. */
async function pick(set: PublicKeys, { alg, kid }: Parameters<KeySource>[0]): Promise<KeyAnswer> {
  try {
    return { ok: true, key: await set({ alg, kid }) };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return { ok: false, reason: 'KeyUnknown' };
    return unusable;
  }
}
