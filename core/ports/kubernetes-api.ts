import type { JsonObject } from '../encoding/json-object.ts';
import type { Result } from '../outcome/result.ts';

export type { JsonObject };

/**
 * A definite refusal of the API server. The call throws if the outcome is unknown (a broken connection, a timeout, a 5xx, an
 * unreadable answer) or if the API server throttles (ThrottledError).
 */
export type ApiRefusal =
  | 'Unauthorized' // 401: the credentials of the caller
  | 'Forbidden' // 403: the permissions of the caller
  | 'NotFound'
  | 'Conflict' // the resourceVersion or UID is not current; at a create: the object exists
  | 'Expired' // 410: the resourceVersion or continue token is too old: list again
  | 'Invalid' // 400, 422 and the other 4xx: final for this call
  | 'TooLarge'; // for the API server, etcd, a URL or the client

export interface ApiProblem {
  readonly why: ApiRefusal;
  /** The API server's words, at most some hundred characters. */
  readonly message: string;
}

export type ApiAnswer<T> = Result<T, ApiProblem>;

export interface ObjectPage {
  /** Of requests: apiVersion and kind are added, because the API server omits them in list items. */
  readonly items: readonly JsonObject[];
  /** The state that all pages of one list show. A watch starts after it. */
  readonly resourceVersion: string;
  /** Present when there are more pages. */
  readonly continue?: string;
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject; readonly bytes: number }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  /** The last event of a watch. */
  | { readonly type: 'ERROR'; readonly why: ApiRefusal | 'Unavailable'; readonly message: string }
  /** A line was too long to be read, so an unknown object changed. Requesters can create such objects. */
  | { readonly type: 'OVERSIZED'; readonly bytes: number }
  /** A line could not be read: something changed. */
  | { readonly type: 'UNREADABLE'; readonly message: string };

/**
 * The objects of one resource, or a selection of them. Refusals and errors are those of `RequestApi.list` and `RequestApi.watch`, which
 * describe both methods.
 */
export interface ListWatch {
  list(
    query: { readonly limit: number; readonly continue?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer<ObjectPage>>;
  watch(
    query: { readonly resourceVersion: string; readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<ApiAnswer<AsyncIterable<WatchEvent>>>;
}

/**
 * The CertificateSigningRequests of one cluster, certificates.k8s.io/v1. `test/contract/` tests each implementation against
 * these comments. Every call ends in bounded time, even without `signal`. A method throws if the failure is temporary; it may
 * have taken effect.
 */
export interface RequestApi {
  /**
   * One page. Without `continue`: the first page of the newest state (a consistent read). With it: the next page of that list.
   */
  list(
    query: { readonly signerName: string; readonly limit: number; readonly continue?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer<ObjectPage>>;
  /**
   * Every change after `resourceVersion`, in order, each once, with bookmarks if the server sends them. The iteration ends
   * when the server ends it (about `timeoutSeconds`), and throws when the connection breaks.
   */
  watch(
    query: { readonly signerName: string; readonly resourceVersion: string; readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<ApiAnswer<AsyncIterable<WatchEvent>>>;
  get(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Replaces `status` only if the object still has this UID and resourceVersion. Returns the stored object. */
  updateStatus(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Replaces the Approved and Denied conditions and metadata.annotations in one write, under the condition of updateStatus. */
  updateApproval(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Whether the cluster's authorization permits this user the action. */
  reviewAccess(question: AccessQuestion, signal: AbortSignal): Promise<ApiAnswer<boolean>>;
  /** An Event of events.k8s.io/v1 in namespace `default`, which Kubernetes uses for cluster-scoped objects. */
  createEvent(event: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

/** The spec of a SubjectAccessReview (authorization.k8s.io/v1) about a cluster-scoped resource. */
export interface AccessQuestion {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** The user's extra fields (`spec.extra`), which authorizers may use. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}
