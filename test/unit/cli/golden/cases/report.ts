import { hour, judged, newFolder, recordOf, used, verdictOf } from '../../register.ts';
import { now } from '../../run.ts';
import type { Goldens } from '../session.ts';

export const goldens: Goldens = {
  async report({ run, call }) {
    const folder = await newFolder();
    call('DATA', folder.path);
    await used(folder, recordOf('worker-1', 'a'));
    await judged(folder, verdictOf('worker-1', [], { decidedAt: now - hour }));
    await run('report --data DATA');
    await judged(folder, verdictOf('worker-2', [['AttestationMissing', 'the request has no evidence of its machine']]));
    await run('report --data DATA');
    // The page and the JSON have tests of their own (test/unit/cli/report). The folder has no ledger and no CA.
    await run('report --data DATA -o json', { lines: 60 });
    await run('report --data DATA -o html', { lines: 2 });
    await run('report --data DATA --context prod');
    await run('report --data DATA/none -o html');
  },
};
