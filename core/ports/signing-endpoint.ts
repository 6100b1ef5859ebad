import type { BusyWhy, IgnoredWhy, RefusalCode, Violations } from '../outcome/outcome.ts';
import type { JsonObject } from './kubernetes-api.ts';

/**
 * The sign and attest functions of one cluster as their clients see them. A call sends one request. It throws if no whole
 * answer arrives in time; the function may have issued or decided all the same, and answers a repetition with the same
 * certificate or verdict.
 */
export interface SigningEndpoint {
  sign(object: JsonObject, signal: AbortSignal): Promise<SignAnswer>;
  /** May this request, approved or not, be approved? `context` can only restrict the answer; attest does not trust it. */
  attest(object: JsonObject, context: JsonObject | undefined, signal: AbortSignal): Promise<AttestAnswer>;
}

/** The function did not answer, or not now. Never final for a request. */
export type NoAnswer =
  /** `why` of the function; absent if a proxy or load balancer throttles. */
  | { readonly kind: 'busy'; readonly why?: BusyWhy; readonly retryAfterSeconds?: number }
  /** 401, 403, or no credentials: about the caller. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** Another answer: of a proxy, a load balancer or a newer version. */
  | { readonly kind: 'unexpected'; readonly status: number; readonly message: string };

export type SignAnswer =
  /** Checked to be text only. */
  | { readonly kind: 'issued'; readonly certificatePem: string }
  /** Certainly the function's: its header, a Status, and every cause with a known code. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'invalid' }
  | NoAnswer;

export type AttestAnswer =
  /** Certainly the function's: its header, a known decision, and a reason that fits it. */
  | { readonly kind: 'verdict'; readonly verdict: AttestVerdict }
  /** Too large to be read. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'invalid' }
  | NoAnswer;

/** `annotations` are for the object, with any decision. Their names are this project's own. */
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
