/** What a cluster reserves: names and addresses that its signers refuse. */
import type { Place } from '../fields/place.ts';
import type { ClusterInput } from '../schema/cluster.ts';
import { parseRange } from '../../policy/patterns.ts';
import type { AddressRange } from '../../policy/patterns.ts';
import { comparableName } from '../../policy/reserved-names.ts';
import type { Reserved } from '../../policy/reserved-names.ts';

/** `at`: the cluster. */
export function resolveReserved(
  { reservedNames, reservedAddresses, clusterDomain }: ClusterInput,
  at: Place,
): Reserved {
  reservedNames.forEach((pattern, index) => {
    if (/^\*+$/.test(pattern)) at('reservedNames', index).error('is every name');
  });
  const addresses = resolveRanges(reservedAddresses, at('reservedAddresses'));
  return { names: reservedNames.map(comparableName), addresses, clusterDomain };
}

export const notRange = 'must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8';

/** Each must be a CIDR block or one address; a block of all addresses is a mistake. */
export function resolveRanges(texts: readonly string[], at: Place): readonly AddressRange[] {
  return texts.flatMap((text, index) => {
    const range = parseRange(text);
    if (range === undefined) at(index).error(notRange);
    else if (/^0+$/.test(range.first) && /^f+$/.test(range.last)) at(index).error('is every address');
    return range ?? [];
  });
}
