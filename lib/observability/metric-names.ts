/** The metrics that are counted from log lines. */
import type { LogAlarm } from '../../core/outcome/trouble.ts';

export const metricNames: Readonly<Record<LogAlarm, string>> = {
  faults: 'Faults',
  'unexpected-refusals': 'UnexpectedRefusals',
  'many-refusals': 'Refusals',
  interruptions: 'Interruptions',
  retirement: 'RetirementFailures',
};
export const caDaysLeft = 'CaDaysLeft';
export const wouldRefuse = 'WouldRefuse';
export const retiredMachines = 'RetiredMachines';

export function namespaceOf(cluster: string): string {
  return `Countersign/${cluster}`;
}
