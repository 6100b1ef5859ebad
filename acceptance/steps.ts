/** The steps of the run, in their order. */
import { alarms } from './steps/alarms.ts';
import { changes } from './steps/changes.ts';
import { deploy } from './steps/deploy.ts';
import { doors } from './steps/doors.ts';
import { machines } from './steps/machines.ts';
import { preflight } from './steps/preflight.ts';
import { quiet } from './steps/quiet.ts';
import { restore } from './steps/restore.ts';
import { rights } from './steps/rights.ts';
import { roles } from './steps/roles.ts';
import { sessionTags } from './steps/session-tags.ts';
import { throttling } from './steps/throttling.ts';
import type { Step } from './world/step.ts';

export const steps: readonly Step[] = [
  roles,
  preflight,
  deploy,
  doors,
  sessionTags,
  machines,
  throttling,
  alarms,
  changes,
  quiet,
  restore,
  rights,
];
