/**
 * What is being worked on, as it is kept between calls: a key that survives every failed attempt, the request that is under
 * way, and what was said no to. Written before each step that cannot be taken back.
 */
import { createHash, createPrivateKey } from 'node:crypto';
import { readWork, writeWork } from '../files/cache.ts';
import type { Slot } from '../files/cache.ts';
import type { Wanted } from '../request/request.ts';
import type { Settings } from '../settings/settings.ts';

export interface WorkState {
  readonly version: 1;
  /** What the request is for. With other settings it would get another certificate. */
  readonly purpose: string;
  readonly keyPem: string;
  readonly request?: PendingRequest;
  /** In a row: requests that nobody decided on, refusals, refusals answered with another try at once, keys given up. */
  readonly unanswered: number;
  readonly refusals: number;
  readonly retries: number;
  readonly keysGivenUp: number;
  /** The version of evidence that this cluster wants, where it said so. */
  readonly evidenceVersion?: string;
  /** After a refusal: not before this moment again. */
  readonly rest?: { readonly until: number; readonly message: string };
}

export interface PendingRequest {
  readonly name: string;
  readonly text: string;
  readonly createdAt: number;
  readonly staleAt: number;
  /** As the API server called us when we created it. */
  readonly username?: string;
}

/** The key is kept whatever is asked for with it; everything else is of one purpose. */
export function loadWork(slot: Slot, purpose: string): WorkState | { readonly problem: string } | undefined {
  const text = readWork(slot);
  if (text === undefined || typeof text !== 'string') return text;
  const state = decodeWork(text);
  if (state === undefined) return { problem: 'cannot be used' };
  return state.purpose === purpose ? state : newWork(purpose, state.keyPem);
}

export function newWork(purpose: string, keyPem: string): WorkState {
  return { version: 1, purpose, keyPem, unanswered: 0, refusals: 0, retries: 0, keysGivenUp: 0 };
}

export function saveWork(slot: Slot, state: WorkState): void {
  writeWork(slot, `${JSON.stringify(state, null, 2)}\n`);
}

export function purposeOf(settings: Settings, { signerName, usages, names }: Wanted): string {
  const { nodeName, clusterName, audience, provider, keyKind, evidenceVersion } = settings;
  const fields = [nodeName, clusterName, audience, provider, keyKind, evidenceVersion, signerName, usages, names];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}

/** Whole and of the right types, or nothing: it may have been edited, or be of another version. */
function decodeWork(text: string): WorkState | undefined {
  try {
    const state = JSON.parse(text) as WorkState;
    const numbers = [state.unanswered, state.refusals, state.retries, state.keysGivenUp];
    if (state.version !== 1 || typeof state.purpose !== 'string' || !numbers.every(Number.isSafeInteger))
      return undefined;
    createPrivateKey(state.keyPem);
    const { request, rest, evidenceVersion } = state;
    if (request !== undefined && !isRequest(request)) return undefined;
    if (rest !== undefined && !(Number.isFinite(rest.until) && typeof rest.message === 'string')) return undefined;
    return evidenceVersion === undefined || typeof evidenceVersion === 'string' ? state : undefined;
  } catch {
    return undefined;
  }
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
