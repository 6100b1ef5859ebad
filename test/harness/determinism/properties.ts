/**
 * fast-check for unit tests. The default tier draws the same values in every run, so that what fails there fails again; the
 * deep tier, which lists the same files, draws new ones and prints their seed when a property fails.
 */
import * as fc from 'fast-check';
import { tier } from './tier.ts';

if (tier === 'default') fc.configureGlobal({ seed: 1 });

export { fc };
