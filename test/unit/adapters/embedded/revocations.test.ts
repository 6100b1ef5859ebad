import { join } from 'node:path';
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import { revocationsContract } from '../../../contract/revocation/revocations.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

revocationsContract('embedded', async () => {
  const folder = temporaryFolder('revocations');
  const opened = openEmbeddedRevocations(join(folder.path, 'revocations.sqlite'));
  return {
    ...opened,
    close: async () => {
      opened.close();
      folder.remove();
    },
  };
});
