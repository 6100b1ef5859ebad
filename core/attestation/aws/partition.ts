/** A partition of AWS has accounts, ARNs and host names of its own. */
export interface Partition {
  /** As in ARNs. */
  readonly name: string;
  /** Of regional service hosts: `sts.<region>.<suffix>`. */
  readonly dnsSuffix: string;
}

/**
 * The public partitions, from the table of AWS's SDKs (partitions.json). The isolated ones are left out because we cannot test
 * them; their regions are refused.
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
