/** What the emulators cannot show (docs/internals/emulators.md), by the checks that ask for it. */

const limits = {
  localstack: {
    permissions: 'LocalStack permits everything',
    'leading-keys': 'LocalStack permits everything',
    'kms-conditions': 'LocalStack permits everything',
    'source-function': 'LocalStack permits everything',
    'http-api': 'LocalStack’s HTTP APIs exist by name only',
    'function-url': 'LocalStack does not name the caller to the function, which refuses the call',
    'service-quotas': 'LocalStack has no Service Quotas for KMS',
    'region-list': 'the list of services in LocalStack may be older than AWS’s',
    concurrency: 'LocalStack does not limit concurrency',
    'session-tags': 'LocalStack permits everything',
    instances: 'LocalStack boots no instance',
    'log-metrics': 'LocalStack counts no metric from log lines',
    alarms: 'LocalStack’s alarms see no metric of these functions',
    drift: 'LocalStack detects no drift',
    trail: 'LocalStack has no CloudTrail',
    restore: 'LocalStack’s DynamoDB restores no table',
  },
  ministack: {
    'leading-keys': 'MiniStack does not evaluate dynamodb:LeadingKeys',
    'source-function': 'MiniStack does not evaluate lambda:SourceFunctionArn',
    'kms-conditions': 'MiniStack does not evaluate kms: conditions',
    'function-url': 'MiniStack does not name the caller to the function, which refuses the call',
    'service-quotas': 'MiniStack has no Service Quotas',
    'region-list': 'MiniStack has no list of AWS’s regions',
    instances: 'MiniStack boots no instance',
    'log-metrics': 'MiniStack counts no metric from log lines',
    alarms: 'MiniStack’s alarms see no metric of log lines',
    'alarm-states': 'MiniStack’s alarms disregard the dimensions of their metrics, so that they see earlier runs',
    trail: 'MiniStack records events only with CLOUDTRAIL_RECORDING=1',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export type Limit = keyof (typeof limits)['localstack'] | keyof (typeof limits)['ministack'];
export type EmulatorLimits = Readonly<Partial<Record<Limit, string>>>;
export type EmulatorName = keyof typeof limits;

export interface Emulated {
  readonly name: string;
  readonly endpoint: string;
  /** What it cannot show, by limit. */
  readonly limits: EmulatorLimits;
  /** Changes that a template needs before the emulator can make it. */
  readonly adapt: (template: object) => object;
  /** Plays the instances that the emulator does not boot. Only tests have it. */
  readonly machines?: Machines;
}

export interface Machines {
  /** What EC2 would have to say about instances, and the emulator does not: keys of `attestation.aws`. */
  readonly attestation: object;
  /** What the instance wrote to its console so far. `userData`: as given to RunInstances, not encoded. */
  console(instanceId: string, zone: string, userData: Uint8Array): Promise<string>;
}

export function limitsOf(name: EmulatorName): EmulatorLimits {
  return limits[name];
}

/** Which emulator answers there. Throws if none does: `--endpoint` is for emulators only. */
export async function emulatorAt(endpoint: string): Promise<EmulatorName> {
  for (const name of Object.keys(limits) as EmulatorName[]) {
    const signal = AbortSignal.timeout(10_000);
    const answer = await fetch(`${endpoint}/_${name}/health`, { signal }).catch(() => undefined);
    if (answer?.ok === true) return name;
  }
  throw new Error(`neither LocalStack nor MiniStack answers at ${endpoint}`);
}
