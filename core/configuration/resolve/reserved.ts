/** What a cluster reserves: names and addresses that its signers refuse. Checked once, here. */
import type { Path, Report } from '../model/report.ts';
import type { ClusterInput } from '../schema/cluster.ts';
import { parseRange } from '../../policy/patterns.ts';
import type { AddressRange } from '../../policy/patterns.ts';
import { comparableName } from '../../policy/reserved-names.ts';
import type { Reserved } from '../../policy/reserved-names.ts';

export function resolveReserved(input: ClusterInput, report: Report): Reserved {
  const names = input.reservedNames ?? [];
  names.forEach((pattern, index) => {
    if (/^\*+$/.test(pattern)) report('error', ['reservedNames', index], 'is every name');
  });
  return {
    names: names.map(comparableName),
    addresses: resolveRanges(input.reservedAddresses, ['reservedAddresses'], report),
    clusterDomain: input.clusterDomain ?? 'cluster.local',
  };
}

/** Each must be a CIDR block or one address; a block of all addresses is a mistake. */
export function resolveRanges(texts: readonly string[] | undefined, at: Path, report: Report): readonly AddressRange[] {
  return (texts ?? []).flatMap((text, index) => {
    const range = parseRange(text);
    if (range === undefined)
      report(
        'error',
        [...at, index],
        'must be an address or a CIDR block without bits beyond its prefix, such as 10.0.0.0/8',
      );
    else if (/^0+$/.test(range.first) && /^f+$/.test(range.last)) report('error', [...at, index], 'is every address');
    return range ?? [];
  });
}
