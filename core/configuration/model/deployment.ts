export interface DeploymentConfiguration {
  readonly account?: string;
  readonly region?: string;
  readonly frontDoor: 'httpApi' | 'functionUrl';
  readonly access: {
    readonly iam?: { readonly principals: readonly string[] };
    readonly jwt?: JwtAccess;
  };
  readonly limits: {
    readonly reservedConcurrency: number;
    /** Of each way in; a function URL has none. */
    readonly throttle?: { readonly rate: number; readonly burst: number };
    /** The relay's: nothing on AWS obeys it. */
    readonly inFlightPerRequester: number;
  };
  readonly alarms: {
    readonly topics: readonly string[];
    readonly caDaysLeft: number;
    readonly refusals: number;
  };
  readonly keys: {
    /** Left out: whoever IAM of the account lets. */
    readonly administrators?: readonly string[];
    readonly deleters: readonly string[];
  };
  readonly logRetentionDays: number;
}

/** The tokens that are let in. Everything is compared exactly. */
export interface JwtAccess {
  readonly issuer: string;
  readonly audience: string;
  readonly subjects: readonly string[];
  /** RFC 7517 §5; left out: fetched from the issuer. */
  readonly jwks?: { readonly keys: readonly Readonly<Record<string, unknown>>[] };
}
