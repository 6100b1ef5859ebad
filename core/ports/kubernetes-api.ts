import type { JsonObject } from '../encoding/json-object.ts';

export type { JsonObject };

/**
 * A definite refusal of the API server. If the outcome is open (a broken connection, a timeout, a 5xx, an unreadable answer)
 * the call throws, and so it does when the API server throttles (ThrottledError).
 */
export type ApiRefusal =
  | 'Unauthorized' // 401: about the caller, never about the object
  | 'Forbidden' // 403: about the caller
  | 'NotFound'
  | 'Conflict' // another resourceVersion or UID than the one sent; of a create: it exists
  | 'Expired' // 410: the resourceVersion or continue token is too old: list again
  | 'Invalid' // 400, 422 and the other 4xx: final for this call
  | 'TooLarge'; // more than the API server or etcd stores, a URL carries or the client holds

export type ApiAnswer<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: ApiRefusal; readonly message: string };

export interface RequestPage {
  /** Each with apiVersion and kind, which the API server leaves out of list items. */
  readonly items: readonly JsonObject[];
  /** The same on all pages of one list: the state that they show, and where a watch continues. */
  readonly resourceVersion: string;
  /** Present when there are more pages. */
  readonly continue?: string;
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject; readonly bytes: number }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  /** The last one of its watch. */
  | { readonly type: 'ERROR'; readonly why: ApiRefusal | 'Unavailable'; readonly message: string }
  /** A line was too long to hold: an unknown object changed. Requesters can make such objects. */
  | { readonly type: 'OVERSIZED'; readonly bytes: number }
  /** A line could not be read: something changed. */
  | { readonly type: 'UNREADABLE'; readonly message: string };

/**
 * The CertificateSigningRequests of one cluster, certificates.k8s.io/v1. `test/contract/` tests each implementation against
 * these comments. Every call ends in bounded time, even without `signal`. A method that throws means "temporary: try again", and
 * may have taken effect.
 */
export interface RequestApi {
  /**
   * One page. Without `continue` it begins a list of the newest state (a consistent read); with it the same list goes on.
   */
  list(
    query: { readonly signerName: string; readonly limit: number; readonly continue?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer<RequestPage>>;
  /**
   * Every change after `resourceVersion`, in order, each once, with bookmarks if the server sends them. The iteration ends
   * when the server ends it (about `timeoutSeconds`), and throws when the connection breaks.
   */
  watch(
    query: { readonly signerName: string; readonly resourceVersion: string; readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<ApiAnswer<AsyncIterable<WatchEvent>>>;
  get(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Replaces `status`, only if the object still has this UID and resourceVersion. Gives the object as stored. */
  updateStatus(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** The same for the decisions among the conditions and metadata.annotations, in one write. Other fields do not change. */
  updateApproval(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Does the cluster's authorization permit this to this user? A review writes nothing. */
  reviewAccess(question: AccessQuestion, signal: AbortSignal): Promise<ApiAnswer<boolean>>;
  /** An Event of events.k8s.io/v1 in namespace `default`, where those about cluster-wide objects live. */
  createEvent(event: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

/** The spec of a SubjectAccessReview (authorization.k8s.io/v1) about a cluster-wide resource. */
export interface AccessQuestion {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** Further claims of the authenticators, passed on unread: authorizers may use them. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}
