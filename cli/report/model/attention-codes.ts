/** What needs an operator: the kinds. */
import type { Standing } from './nodes.ts';

/** A closed list: scripts may match on the codes. */
export const attentionCodes = [
  'CaNotInForce', // a configured CA has no usable certificate
  'CaEnded', // a CA in force has ended
  'CaEndsSoon', // a CA in force ends within 90 days
  'CaNotTrusted', // a part of the cluster refuses certificates that it meets
  'NodeEnded', // nodes whose certificate ended
  'NodeLate', // nodes that have used 90 % of a lifetime without a renewal
  'NodeWithoutCertificate', // Node objects without a certificate in the ledger
  'FirstUseConflict', // a machine was refused because the records name another one, another name or another key
  'RequestWaits', // requests without a decision, or approved without a certificate, for ten minutes
  'RequestRefused', // requests that failed or were refused
  'EnforcingWouldRefuse', // nodes that are admitted only because of audit mode
  'MachineUnknown', // a platform does not know a machine on record
  'NotRead', // a part of the report was asked for and could not be read
] as const;
export type AttentionCode = (typeof attentionCodes)[number];

export type Section = 'nodes' | 'machines' | 'requests' | 'cas' | 'audit' | 'sources';

export interface Attention {
  /** `act`: certificates are refused, or will be within days. `watch`: to be looked at. */
  readonly level: 'act' | 'watch';
  readonly code: AttentionCode;
  /** One sentence with its numbers. */
  readonly text: string;
  /** What to do, or what to read. */
  readonly advice: string;
  readonly section: Section;
  /** Up to three of those that it means, and `…` if there are more. */
  readonly examples?: readonly string[];
  /** Only of nodes: which of them it means. */
  readonly standing?: Standing;
}
