import type { BusyWhy, IgnoredWhy, RefusalCode, Violations } from '../outcome/outcome.ts';
import type { JsonObject } from './kubernetes-api.ts';

/**
 * The sign and attest functions of one cluster, as clients call them. A call sends one HTTP request. It throws if no complete
 * answer arrives in time. The function may have issued or decided even then; it answers a repetition with the same certificate
 * or verdict.
 */
export interface SigningEndpoint {
  sign(object: JsonObject, signal: AbortSignal): Promise<SignAnswer>;
  /** Whether the request may be approved. `context` is not trusted: it can only cause a stricter answer. */
  attest(object: JsonObject, context: AttestContext | undefined, signal: AbortSignal): Promise<AttestAnswer>;
}

/** What the caller of attest looked up about the machine of a request. */
export interface AttestContext {
  /** Absent: the caller did not look. */
  readonly clusterApi?: ClusterApiContext;
}

/** The objects of a management cluster of Cluster API that belong to one request. */
export interface ClusterApiContext {
  /**
   * Every Machine and MachinePool with the provider ID of the request, of all Clusters; at most `mostMachines`. For a request
   * without a provider ID (a stock kubelet's serving request): with the provider ID of its Node object, or whose nodeRef is
   * its node.
   */
  readonly machines: readonly MachineObject[];
  /** The configured Cluster object. Absent: it does not exist. */
  readonly cluster?: ClusterObject;
}

export const mostMachines = 8;

/** A Machine or a MachinePool (cluster.x-k8s.io/v1beta2). */
export interface MachineObject {
  readonly kind: 'Machine' | 'MachinePool';
  readonly namespace: string;
  readonly name: string;
  /** `spec.clusterName`. */
  readonly clusterName: string;
  /** `spec.providerID` of a Machine. Of a MachinePool: the entry of `spec.providerIDList` by which it was found. */
  readonly providerId: string;
  /** Name of the Node in `status.nodeRef`. A MachinePool does not tell which Node has which provider ID. */
  readonly nodeName?: string;
  /** The condition `BootstrapConfigReady` is True; if absent, `status.initialization.bootstrapDataSecretCreated`. */
  readonly bootstrapReady: boolean;
  /** Whether it has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Addresses and DNS names in `status.addresses` of a Machine. Absent or empty: it lists none yet. */
  readonly addresses?: readonly string[];
}

/** The Cluster object. Its fields come from `spec.security`, or from the annotations `cluster.x-k8s.io/…`. */
export interface ClusterObject {
  /** Whether it has a deletionTimestamp. */
  readonly deleting: boolean;
  readonly kubeletAuthentication?: boolean;
  readonly authorizedAttestors?: readonly string[];
}

/** Hints for attest. They are optional, so callers of sign and attest need not have this. */
export interface LookEndpoint {
  /**
   * Attest asks the platform whether the machines of these nodes, at most `mostNodeNames`, are terminated. It retires no machine because of
   * the hint alone.
   */
  look(nodeNames: readonly string[], signal: AbortSignal): Promise<LookAnswer>;
}

export const mostNodeNames = 20;

export type LookAnswer = { readonly kind: 'accepted' } | NoAnswer;

/** No answer of the function, or only a temporary one. Never final for a request. */
export type NoAnswer =
  /** `why` is absent if a proxy or load balancer throttles. */
  | { readonly kind: 'busy'; readonly why?: BusyWhy; readonly retryAfterSeconds?: number }
  /** API Gateway or Lambda answered for the function: Lambda throttled it, or it ended without an answer. */
  | { readonly kind: 'functionFailed'; readonly status: number }
  /** 401, 403, or no credentials: the request is not the reason. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** An answer of a proxy, a load balancer or a newer version. */
  | { readonly kind: 'unexpected'; readonly status: number; readonly message: string };

export type SignAnswer =
  /** Only checked to be text. */
  | { readonly kind: 'issued'; readonly certificatePem: string }
  /** Certainly from the function: it has its header, is a Status, and each cause has a known code. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'invalid' }
  | NoAnswer;

export type AttestAnswer =
  /** Certainly from the function: it has its header, a known decision, and a reason that fits the decision. */
  | { readonly kind: 'verdict'; readonly verdict: AttestVerdict }
  /** The request is too large to be read. */
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'invalid' }
  | NoAnswer;

/** The relay writes `annotations` to the object. The client has checked their names. */
export type AttestVerdict =
  | {
      readonly decision: 'approve';
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | {
      readonly decision: 'deny' | 'challenge';
      /** The code of the first violation; the message has all violations. */
      readonly reason: RefusalCode;
      readonly message: string;
      readonly annotations: Readonly<Record<string, string>>;
    }
  | { readonly decision: 'ignore'; readonly reason: IgnoredWhy };
