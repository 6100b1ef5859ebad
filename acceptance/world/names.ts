/** ARNs of what a run makes, for the statements of its policy: every name begins with one of two prefixes. */
export interface Place {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
}

const prefixes = ['accept-*', 'countersign-accept-*'] as const;

/** `named('iam', place, 'role/')` → the ARNs of all roles that a run makes. */
export function named(service: string, { partition, account, region }: Place, before: string): readonly string[] {
  const where = service === 'iam' ? '' : region;
  return prefixes.map((prefix) => `arn:${partition}:${service}:${where}:${account}:${before}${prefix}`);
}
