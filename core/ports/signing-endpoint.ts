import type { BusyWhy, IgnoredWhy, RefusalCode, Violations } from '../outcome/outcome.ts';
import type { JsonObject } from './kubernetes-api.ts';

/**
 * The sign and attest functions of one cluster as their clients see them. A call returns the answer of the function, and
 * throws if there is none: no connection, no whole answer in time. It asks once; the far side may have issued or
 * decided without our hearing it, and answers a repetition with the same certificate or verdict.
 */
export interface SigningEndpoint {
  sign(object: JsonObject, signal: AbortSignal): Promise<SignAnswer>;
  /** May this request, approved or not, be approved? `context` only narrows: the far side believes none of it. */
  attest(object: JsonObject, context: JsonObject | undefined, signal: AbortSignal): Promise<AttestAnswer>;
}

/** Why no answer of the far side's own came, or not now. None of them is ever final for a request. */
export type NoAnswer =
  /** `why` as the function states it; absent if a proxy or front door before it throttles. */
  | { readonly kind: 'busy'; readonly why?: BusyWhy; readonly retryAfterSeconds?: number }
  /** 401, 403, or no credentials to ask with: about the caller. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** Any other answer: of a proxy, a front door or a newer version. */
  | { readonly kind: 'unexpected'; readonly status: number; readonly message: string };

export type SignAnswer =
  /** Nothing is checked yet but that it is text. */
  | { readonly kind: 'issued'; readonly certificatePem: string }
  /** Ours without doubt: our header, a Status, and every cause with a code of the list. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'invalid' }
  | NoAnswer;

export type AttestAnswer =
  /** Ours without doubt: our header, a decision we know, and a reason that goes with it. */
  | { readonly kind: 'verdict'; readonly verdict: AttestVerdict }
  /** Too large to be read. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'invalid' }
  | NoAnswer;

/** `annotations` belong on the object, beside whatever is decided. Only names of this project's own. */
export type AttestVerdict =
  | {
      readonly decision: 'approve';
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | {
      readonly decision: 'deny' | 'challenge';
      /** Of the first rule broken; the message holds them all. */
      readonly reason: RefusalCode;
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | { readonly decision: 'ignore'; readonly reason: IgnoredWhy };
