/** A partition of AWS; each has its own accounts, ARNs and host names. */
export interface Partition {
  /** The name in ARNs. */
  readonly name: string;
  /** The suffix of service host names: `sts.<region>.<suffix>`. */
  readonly dnsSuffix: string;
}

/**
 * The public partitions, from the table of AWS's SDKs (partitions.json). Regions of the isolated partitions are refused,
 * because we cannot test them.
 */
const partitions: readonly (Partition & { readonly regions: RegExp })[] = [
  { name: 'aws', dnsSuffix: 'amazonaws.com', regions: /^(?:af|ap|ca|eu|il|me|mx|sa|us)-[a-z]{1,16}-[0-9]{1,2}$/ },
  { name: 'aws-cn', dnsSuffix: 'amazonaws.com.cn', regions: /^cn-[a-z]{1,16}-[0-9]{1,2}$/ },
  { name: 'aws-us-gov', dnsSuffix: 'amazonaws.com', regions: /^us-gov-[a-z]{1,16}-[0-9]{1,2}$/ },
  { name: 'aws-eusc', dnsSuffix: 'amazonaws.eu', regions: /^eusc-[a-z]{2}-[a-z]{1,16}-[0-9]{1,2}$/ },
];

export function partitionOf(region: string): Partition | undefined {
  return partitions.find(({ regions }) => regions.test(region));
}
