import { version } from '../../../../../core/version.ts';
import type { Goldens } from '../session.ts';

const program = { commit: '0123456789ab', node: '24.0.0', platform: 'linux-x64' };

export const goldens: Goldens = {
  async completion({ run }) {
    for (const shell of ['bash', 'zsh', 'fish']) await run(`completion ${shell}`);
    await run('completion tcsh');
  },

  async version({ run, call }) {
    call('VERSION', version);
    await run('version', { world: { program } });
    await run('version -o json', { world: { program } });
    await run('version -o wide');
  },
};
