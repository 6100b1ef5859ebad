/**
 * The state of an unfinished attempt, kept between calls of the program: the key, which survives every failed attempt, the
 * pending request, the approver's challenge, and the backoff after a refusal. Written before each step that has an effect outside.
 */
import { createHash, createPrivateKey } from 'node:crypto';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { readText, workFile } from '../files/cache.ts';
import type { Slot } from '../files/cache.ts';
import type { Challenge } from '../providers/provider.ts';
import type { Wanted } from '../request/request.ts';
import type { Settings } from '../settings/settings.ts';

export interface WorkState {
  readonly version: 1;
  /** Digest of the settings that determine the certificate. With other settings the signer would issue another certificate. */
  readonly purpose: string;
  readonly keyPem: string;
  readonly request?: PendingRequest | undefined;
  /** Counts of consecutive requests without a decision, of refusals, of requests sent at once after a refusal, and of replaced keys. */
  readonly unanswered: number;
  readonly refusals: number;
  readonly retries: number;
  readonly keysGivenUp: number;
  /** Count of consecutive challenges. */
  readonly challenges: number;
  /** What the next request answers. */
  readonly challenge?: PendingChallenge | undefined;
  /** The version of evidence that the approver accepts, if a refusal named one. */
  readonly evidenceVersion?: string;
  /** After a refusal the node sends no request before `until`. */
  readonly backoff?: { readonly until: number; readonly message: string } | undefined;
}

export interface PendingChallenge extends Challenge {
  /** From this moment on no request answers it: the approver would refuse the answer as too late. */
  readonly until: number;
}

export interface PendingRequest {
  readonly name: string;
  readonly text: string;
  readonly createdAt: number;
  readonly staleAt: number;
  /** This node's user name, as the API server recorded it in the object. */
  readonly username?: string;
}

/** undefined if the file does not exist. The key is kept even if the purpose has changed: everything else belongs to one purpose. */
export function loadWork(slot: Slot, purpose: string): Result<WorkState | undefined, string> {
  const text = readText(workFile(slot));
  if (!text.ok) return text;
  if (text.value === undefined) return success(undefined);
  const state = decodeWork(text.value);
  if (state === undefined) return failure('is malformed');
  return success(state.purpose === purpose ? state : newWork(purpose, state.keyPem));
}

export function newWork(purpose: string, keyPem: string): WorkState {
  return { version: 1, purpose, keyPem, unanswered: 0, refusals: 0, retries: 0, keysGivenUp: 0, challenges: 0 };
}

export function purposeOf(settings: Settings, { signerName, usages, names }: Wanted): string {
  const { nodeName, clusterName, audience, provider, keyKind, evidenceVersion, endorsementKey } = settings;
  const ofProvider = [provider, evidenceVersion, endorsementKey];
  const fields = [nodeName, clusterName, audience, ofProvider, keyKind, signerName, usages, names];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}

/** undefined unless complete and of the right types: the file may have been edited or written by another version. */
function decodeWork(text: string): WorkState | undefined {
  try {
    // A file that an earlier version wrote has no `challenges`. Its key must not be lost.
    const state: WorkState = { challenges: 0, ...(JSON.parse(text) as Omit<WorkState, 'challenges'>) };
    const numbers = [state.unanswered, state.refusals, state.retries, state.keysGivenUp, state.challenges];
    if (state.version !== 1 || typeof state.purpose !== 'string' || !numbers.every(Number.isSafeInteger))
      return undefined;
    createPrivateKey(state.keyPem);
    const { request, challenge, backoff, evidenceVersion } = state;
    if (request !== undefined && !isRequest(request)) return undefined;
    if (challenge !== undefined && !isChallenge(challenge)) return undefined;
    if (backoff !== undefined && !(Number.isFinite(backoff.until) && typeof backoff.message === 'string'))
      return undefined;
    return evidenceVersion === undefined || typeof evidenceVersion === 'string' ? state : undefined;
  } catch {
    return undefined;
  }
}

function isChallenge({ challenge, credential, until }: PendingChallenge): boolean {
  return typeof challenge === 'string' && typeof credential === 'string' && Number.isFinite(until);
}

function isRequest({ name, text, createdAt, staleAt, username }: PendingRequest): boolean {
  return (
    typeof name === 'string' &&
    typeof text === 'string' &&
    Number.isFinite(createdAt) &&
    Number.isFinite(staleAt) &&
    (username === undefined || typeof username === 'string')
  );
}
