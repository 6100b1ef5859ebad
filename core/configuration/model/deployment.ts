import type { DeploymentInput } from '../schema/deployment.ts';

/** How one cluster runs on AWS. The keys of countersign.yaml are described in the schema. */
export interface DeploymentConfiguration extends Pick<DeploymentInput, 'frontDoor' | 'alarms' | 'dashboard' | 'keys'> {
  readonly account?: string;
  readonly region?: string;
  /** Of the HTTP APIs, by authentication method. */
  readonly domains?: { readonly iam?: Domain; readonly jwt?: Domain };
  readonly access: { readonly iam?: { readonly principals: readonly string[] }; readonly jwt?: JwtAccess };
  /** `throttle` applies to each HTTP API; a function URL has no throttle. The relay enforces `inFlightPerRequester`, AWS the others. */
  readonly limits: DeploymentInput['limits'];
  readonly logRetentionDays: number;
  /** By CA. */
  readonly caKeys: ReadonlyMap<string, CaKeyPlace>;
}

/** How KMS has the key of a CA: in one Region, in several, or as a replica of a key of another Region. */
export type CaKeyPlace = 'oneRegion' | 'multiRegion' | { readonly replicaOf: string };

export interface Domain {
  readonly name: string;
  /** ARN in ACM. */
  readonly certificate: string;
}

/** The service-account tokens that are accepted. All fields are compared exactly. */
export interface JwtAccess {
  readonly issuer: string;
  readonly audience: string;
  readonly subjects: readonly string[];
  /** RFC 7517 §5; absent: fetched from the issuer. */
  readonly jwks?: { readonly keys: readonly Readonly<Record<string, unknown>>[] };
}
