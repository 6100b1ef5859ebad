/** AWS's partitions: worlds of their own, each with accounts, ARNs and host names of its own. */

export interface Partition {
  /** As in ARNs. */
  readonly name: string;
  /** Of regional service hosts: `sts.<region>.<suffix>`. */
  readonly dnsSuffix: string;
}

/**
 * The public ones, from the partition table of AWS's SDKs (partitions.json). The isolated ones are not here: nobody could
 * try them, and a region that is not understood is refused.
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
