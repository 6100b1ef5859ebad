/** What the `aws` provider needs of AWS. Both answer the question asked and decide nothing: the rules are here, in core. */
import type { InstanceDescription } from './instance.ts';

export interface AwsPorts {
  readonly sts: StsEndpoint;
  readonly ec2: Ec2Endpoint;
  /** DER, by region. A document of any other region is refused. */
  readonly regionCertificates: RegionCertificates;
}

export type RegionCertificates = ReadonlyMap<string, readonly Uint8Array[]>;

/**
 * One GET over HTTPS to exactly this host, path and headers. Never follows a redirect (the answer must be that of the
 * host we chose) and reads at most 64 KiB. Throws when it is temporary: network, 5xx, 429.
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
  /** As the header says it; empty when there is none. */
  readonly contentType: string;
  readonly body: string;
}

/** Throws for everything that is neither a description nor EC2's own "no such instance", missing permissions included. */
export interface Ec2Endpoint {
  describeInstance(where: InstancePlace, instanceId: string): Promise<InstanceDescription | 'notFound'>;
}

export interface InstancePlace {
  readonly account: string;
  readonly region: string;
  /** ARN out of countersign.yaml, never out of evidence. Absent = as whom the function runs. */
  readonly assumeRole?: string;
}
