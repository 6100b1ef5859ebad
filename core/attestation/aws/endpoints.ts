/** The calls of the `aws` and `aws-nitrotpm` providers to AWS. The rules about the answers are in their folders. */
import type { InstanceDescription } from './instance.ts';

export interface AwsPorts {
  readonly sts: StsEndpoint;
  readonly ec2: Ec2Endpoint;
  /** Required to list terminated instances. */
  readonly fleet?: Ec2Fleet;
  /** DER, by region. A document of a region without certificates is refused. */
  readonly regionCertificates: RegionCertificates;
  /** Required if the cluster takes evidence of `aws-nitrotpm`. */
  readonly endorsementKeys?: EndorsementKeyEndpoint;
}

export type RegionCertificates = ReadonlyMap<string, readonly Uint8Array[]>;

/**
 * One GET over HTTPS to exactly this host, path and headers. Never follows a redirect (the answer must come from
 * this host) and reads at most 64 KiB. Throws on a temporary failure: network, 5xx, 429.
 */
export type StsEndpoint = (request: StsRequest) => Promise<StsAnswer>;

export interface StsRequest {
  readonly host: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface StsAnswer {
  readonly status: number;
  /** The Content-Type header; empty if absent. */
  readonly contentType: string;
  readonly body: string;
}

/** Throws unless EC2 describes the instance or answers that it does not exist; also if a permission is missing. */
export interface Ec2Endpoint {
  describeInstance(where: InstancePlace, instanceId: string): Promise<InstanceDescription | 'notFound'>;
}

/** Lists all matching instances, page by page. Throws if a page cannot be read. */
export interface Ec2Fleet {
  listInstances(where: InstancePlace, filters: readonly InstanceFilter[]): AsyncIterable<InstanceDescription>;
}

/** A filter of DescribeInstances: one of its values must match; `*` and `?` are wildcards. */
export interface InstanceFilter {
  readonly name: string;
  readonly values: readonly string[];
}

/** Values of KeyType in GetInstanceTpmEkPub. */
export const endorsementKeyTypes = ['rsa-2048', 'ecc-sec-p384'] as const;
export type EndorsementKeyType = (typeof endorsementKeyTypes)[number];

/**
 * GetInstanceTpmEkPub: the DER of a SubjectPublicKeyInfo, not decoded yet. The caller has learned from EC2 that the instance has a
 * NitroTPM. Throws unless EC2 returns a key, also if a permission is missing.
 */
export type EndorsementKeyEndpoint = (
  where: InstancePlace,
  instanceId: string,
  type: EndorsementKeyType,
) => Promise<Uint8Array>;

export interface InstancePlace {
  readonly account: string;
  readonly region: string;
  /** ARN from countersign.yaml, never from evidence. Absent = the role of the function. */
  readonly assumeRole?: string;
}
