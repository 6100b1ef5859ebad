/** How states are called and drawn. Each has its own words and its own shape: colour alone says nothing. */
import type { CertificateState } from '../model/certificates.ts';
import type { Standing } from '../model/nodes.ts';
import type { RequestRow } from '../model/requests.ts';
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';

/** Classes of the style sheet. */
type Tone = 'bad' | 'warn' | 'good' | 'calm';

type Labels<T extends string> = Readonly<Record<T, readonly [tone: Tone, label: string]>>;

export const standingLabels: Labels<Standing> = {
  ended: ['bad', 'Certificate ended'],
  late: ['bad', 'Renewal late'],
  none: ['warn', 'No certificate'],
  revoked: ['warn', 'Revoked'],
  locked: ['warn', 'Locked'],
  unread: ['calm', 'Not read'],
  due: ['good', 'Renewal due'],
  valid: ['good', 'Valid'],
  gone: ['calm', 'Left the cluster'],
};

export const certificateLabels: Labels<CertificateState> = {
  ended: ['bad', 'Ended'],
  late: ['bad', 'Renewal late'],
  revoked: ['warn', 'Revoked'],
  due: ['good', 'Renewal due'],
  valid: ['good', 'Valid'],
};

export const requestLabels: Labels<RequestRow['state']> = {
  pending: ['warn', 'Pending'],
  approved: ['warn', 'Approved, not signed'],
  failed: ['bad', 'Failed'],
  denied: ['bad', 'Denied'],
  refused: ['bad', 'Refused'],
};

export const auditLabels: Labels<'approved' | 'denied' | 'unknown'> = {
  denied: ['bad', 'Refused'],
  unknown: ['warn', 'Not known'],
  approved: ['good', 'Admitted'],
};

export function badge([tone, label]: readonly [tone: Tone, label: string]): Markup {
  return markup`<span class="s ${tone}">${label}</span>`;
}

export function statesOf<T extends string>(labels: Labels<T>): readonly (readonly [key: string, label: string])[] {
  return Object.entries<readonly [Tone, string]>(labels).map(([key, [, label]]) => [key, label]);
}

/** Kubernetes' own signers without their common prefix. */
export function signerText(signerName: string): string {
  return signerName === '' ? 'signer not recorded' : signerName.replace(/^kubernetes\.io\//, '');
}

/** The first label of a DNS name stands out; the others are the same for most nodes of a cluster. */
export function nodeText(node: string): Markup {
  const dot = /^[\d.]+$/.test(node) ? -1 : node.indexOf('.');
  return dot < 1 ? markup`${node}` : markup`${node.slice(0, dot)}<small>${node.slice(dot)}</small>`;
}
