// Written by `npm run api` from the schema of countersign.yaml. Do not edit.

/** Who may call. */
export interface ClusterAccess {
  /**
   * Callers with AWS credentials: requests are signed (SigV4).
   *
   * @default - none
   */
  readonly iam?: IamAccess;

  /**
   * Callers with a service-account token, on an HTTP API of their own. Not with `frontDoor: functionUrl`.
   *
   * @default - none
   */
  readonly jwt?: JwtAccess;
}

/** Callers with AWS credentials. */
export interface IamAccess {
  /**
   * Who may assume the caller role of the cluster: roles of relays, in other accounts too.
   */
  readonly principals: readonly string[];

  /**
   * Those of `principals` that are roles of nodes, spelled out once more: each such node, and each pod there that
   * reaches the instance metadata, may then ask for certificates in any name.
   *
   * @default - none; a role of nodes is refused
   */
  readonly everyNodeMayAskForCertificates?: readonly string[];

  /**
   * A DNS name of yours for the HTTP API of this authentication method, besides the one that AWS gives.
   *
   * @default - none
   */
  readonly domain?: DomainProps;
}

/** A DNS name of the operator’s for an HTTP API. */
export interface DomainProps {
  /**
   * The name. Required; another one for each authentication method.
   */
  readonly name: string;

  /**
   * ARN of a certificate of ACM for this name, in the region of the stacks.
   */
  readonly certificate: string;
}

/** Callers with a service account token. */
export interface JwtAccess {
  /**
   * The `iss` claim, exactly: what kube-apiserver has as `--service-account-issuer`.
   */
  readonly issuer: string;

  /**
   * What the `aud` claim must hold: a name that only this endpoint has.
   */
  readonly audience: string;

  /**
   * The `sub` claims let in, exactly: `system:serviceaccount:<namespace>:<name>`. Required, since any author of
   * pods can get a token for an audience.
   */
  readonly subjects: readonly string[];

  /**
   * The issuer’s public keys, for an issuer that cannot be reached from AWS: the JSON of `kubectl get --raw
   * /openid/v1/jwks`.
   *
   * @default - fetched from the issuer
   */
  readonly jwks?: string;

  /**
   * A DNS name of yours for the HTTP API of this authentication method, besides the one that AWS gives.
   *
   * @default - none
   */
  readonly domain?: DomainProps;
}

/** How much the cluster may use. */
export interface ClusterLimits {
  /**
   * Signing functions at work at once, reserved in the account. More than a relay’s `--concurrency`. `none`: no
   * reservation; the functions share the unreserved part with all others of the account.
   *
   * @default - 40
   */
  readonly reservedConcurrency?: number | 'none';

  /**
   * How many calls the endpoint lets through. Not with `frontDoor: functionUrl`, which cannot throttle.
   *
   * @default - the defaults of its properties, where the endpoint can throttle
   */
  readonly throttle?: ThrottleProps;

  /**
   * Requests of one requester that the relay has in hand at once. More wait, and none is dropped: a whole pool of
   * nodes may share one token. Of the 32 that it works on in all, so that some are always left for others.
   *
   * @default - 24
   */
  readonly inFlightPerRequester?: number;
}

/** How many calls an endpoint lets through. */
export interface ThrottleProps {
  /**
   * Calls a second by each authentication method; each may be one signature of KMS.
   *
   * @default - 200
   */
  readonly rate?: number;

  /**
   * Calls at once before the rate begins to hold.
   *
   * @default - 400
   */
  readonly burst?: number;
}

/** When alarms are raised, and where they are sent. */
export interface ClusterAlarms {
  /**
   * SNS topics that are notified when an alarm is raised and when it ends.
   *
   * @default - none
   */
  readonly topics?: readonly string[];

  /**
   * Alarm when a CA certificate has fewer days left.
   *
   * @default - 90
   */
  readonly caDaysLeft?: number;

  /**
   * Alarm at so many refusals in five minutes, of all reasons together. Reasons that tell of an attack: at the
   * first.
   *
   * @default - 20
   */
  readonly refusals?: number;
}

/** Who administers the CA keys. */
export interface ClusterKeys {
  /**
   * The principals that may change policy, tags and state of the CA keys; CloudFormation’s own role must be among
   * them.
   *
   * @default - those that IAM of the account permits
   */
  readonly administrators?: readonly string[];

  /**
   * Who may schedule the deletion of a CA key.
   *
   * @default - no principal, until the key policy is changed
   */
  readonly deleters?: readonly string[];

  /**
   * Who may import the key of a CA with `keyMaterial: imported` (`countersign ca import-key`). None of them can
   * sign with it. Required where there is such a CA.
   *
   * @default - none
   */
  readonly importers?: readonly string[];
}

/** Logs of functions and endpoints. */
export interface ClusterLogs {
  /**
   * How long they are kept.
   *
   * @default - 365
   */
  readonly retentionDays?: number;
}

/** Where the stacks are. */
export interface ClusterPlace {
  /**
   * Account, in quotes.
   *
   * @default - that of the stack
   */
  readonly account?: string;

  /**
   * Region.
   *
   * @default - that of the stack
   */
  readonly region?: string;
}
