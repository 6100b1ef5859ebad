/** The steps of the run, in their order. */
import type { Step } from '../world/step.ts';
import { deploy } from './deploy.ts';
import { doors } from './doors.ts';
import { preflight } from './preflight.ts';
import { record } from './record.ts';
import { rights } from './rights.ts';
import { roles } from './roles.ts';
import { sessionTags } from './session-tags.ts';
import { throttling } from './throttling.ts';

export const steps: readonly Step[] = [roles, preflight, deploy, doors, sessionTags, record, throttling, rights];
