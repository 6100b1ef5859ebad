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
    /** Of each HTTP API; a function URL has none. */
    readonly throttle?: { readonly rate: number; readonly burst: number };
    /** Enforced by the relay, not by AWS. */
    readonly inFlightPerRequester: number;
  };
  readonly alarms: {
    readonly topics: readonly string[];
    readonly caDaysLeft: number;
    readonly refusals: number;
  };
  readonly keys: {
    /** Absent: the principals that IAM of the account permits. */
    readonly administrators?: readonly string[];
    readonly deleters: readonly string[];
  };
  readonly logRetentionDays: number;
}

/** The service-account tokens that are accepted. All fields are compared exactly. */
export interface JwtAccess {
  readonly issuer: string;
  readonly audience: string;
  readonly subjects: readonly string[];
  /** RFC 7517 §5; absent: fetched from the issuer. */
  readonly jwks?: { readonly keys: readonly Readonly<Record<string, unknown>>[] };
}
