/** The schedule by which attest looks for terminated machines: EventBridge invokes it on AWS, and a timer in the dev server. */
import type { ClusterConfiguration } from '../../configuration/model/cluster.ts';

/**
 * Milliseconds. A machine is retired by the second look, so 10 to 20 minutes after its end. EC2 lists a terminated instance for
 * about an hour, and a first look counts for 30 minutes, so two runs in a row may fail.
 */
export const scheduleInterval = 600_000;

/** The event of the schedule, and nothing else is in it. */
export const scheduledLook = { countersign: 'retire-gone' } as const;
export type ScheduledLook = typeof scheduledLook;

/** Of the platforms only EC2 lists terminated machines. */
export function hasSchedule({ attestation }: Pick<ClusterConfiguration, 'attestation'>): boolean {
  return attestation?.retireTerminated === true && attestation.aws !== undefined;
}
