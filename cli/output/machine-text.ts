/** Text and JSON of entries of the list of machines. Reasons are untrusted text that must not control a terminal. */
import type { MachineEntry } from '../../core/ports/attestation-store.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { table } from './output.ts';
import { dash, fullText, instantText } from './tofu-text.ts';

export function shownEntry({ name, nodeName, addresses, dnsNames, addedAt, by, reason }: MachineEntry): object {
  const node = nodeName === undefined ? {} : { node: nodeName };
  return { name, ...node, addresses, dnsNames, addedAt: instantText(addedAt), by, reason };
}

export function entriesTable(entries: readonly MachineEntry[], wide: boolean): string {
  return table([
    ['MACHINE', 'NODE', ...(wide ? ['ADDRESSES', 'DNS NAMES'] : []), 'SINCE', 'BY', 'REASON'],
    ...entries.map(({ name, nodeName, addresses, dnsNames, addedAt, by, reason }) => [
      fullText(name),
      dash(printable(nodeName ?? '')),
      ...(wide ? [listText(addresses), listText(dnsNames)] : []),
      instantText(addedAt),
      fullText(by),
      fullText(reason),
    ]),
  ]);
}

export function entryText({ name, nodeName, addresses, dnsNames, addedAt, by, reason }: MachineEntry): string {
  return table([
    ['machine', fullText(name)],
    ['node', nodeName === undefined ? 'as the configuration permits' : printable(nodeName)],
    ['addresses', listText(addresses)],
    ['dns names', listText(dnsNames)],
    ['since', instantText(addedAt)],
    ['by', fullText(by)],
    ['reason', fullText(reason)],
  ]);
}

function listText(texts: readonly string[]): string {
  return dash(texts.map(printable).join(', '));
}
