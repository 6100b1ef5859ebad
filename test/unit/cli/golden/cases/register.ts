/** Commands over the attestation records of a folder, as the dev server leaves them. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { hour, machine, newFolder, recordOf, used } from '../../register.ts';
import type { Goldens, Session } from '../session.ts';

/** The author and the ids of audit items are the same in every run. */
function newWorld() {
  let calls = 0;
  return { userName: () => 'ada', randomBytes: (count: number) => Buffer.alloc(count, (calls += 1)) };
}
const why = "--reason 'ticket 4711'";

async function folderOf({ call }: Session) {
  const folder = await newFolder();
  call('DATA', folder.path);
  return folder;
}

async function twoMachines(session: Session) {
  const folder = await folderOf(session);
  await used(folder, recordOf('worker-1', 'a'));
  await used(folder, recordOf('worker-2', 'b', { uses: 7, renewals: 2, lastSeen: 1_780_311_600_000 - hour }));
  return folder;
}

export const goldens: Goldens = {
  async lock(session) {
    const world = newWorld();
    await twoMachines(session);
    await session.run(`lock worker-1 --data DATA ${why}`, { world });
    await session.run(`lock worker-1 --data DATA ${why}`, { world });
    await session.run('lock worker-1 --data DATA');
  },

  async unlock(session) {
    const world = newWorld();
    await twoMachines(session);
    await session.run(`lock ${machine('b')} --data DATA ${why}`, { world });
    await session.run(`unlock ${machine('b')} --data DATA ${why}`, { world });
    await session.run(`unlock ${machine('b')} --data DATA ${why}`, { world });
  },

  async locks(session) {
    const world = newWorld();
    await twoMachines(session);
    await session.run('locks --data DATA');
    await session.run(`lock worker-1 --data DATA ${why}`, { world });
    await session.run('locks --data DATA', { world });
    await session.run('locks --data DATA -o wide', { world });
    await session.run('locks --data DATA -o yaml', { world });
    await session.run('locks --data DATA/missing');
  },

  async 'tofu list'(session) {
    await twoMachines(session);
    await session.run('tofu list --data DATA');
    await session.run('tofu list --data DATA -o wide');
    await session.run('tofu list --data DATA --state retired');
    await session.run('tofu list --data DATA --state gone');
  },

  async 'tofu show'(session) {
    await twoMachines(session);
    await session.run('tofu show --data DATA --node worker-1');
    await session.run('tofu show --data DATA --node worker-9');
  },

  async 'tofu reset'(session) {
    const world = newWorld();
    await twoMachines(session);
    await session.run(`tofu reset --data DATA --node worker-2 ${why}`, { world });
    await session.run(`tofu reset --data DATA --node worker-2 ${why}`, { world });
  },

  async 'machines list'(session) {
    const world = newWorld();
    await folderOf(session);
    await session.run(`machines allow 'aws#i-0*' --data DATA ${why}`, { world });
    const names = '--node worker-3 --address 10.0.7.3 --dns worker-3.example.com';
    await session.run(`machines allow tpm#${'a'.repeat(64)} ${names} --data DATA ${why}`, { world });
    await session.run('machines list --data DATA');
    await session.run('machines list --data DATA -o wide');
    await session.run('machines list --data DATA/missing');
  },

  async 'machines show'(session) {
    const world = newWorld();
    await folderOf(session);
    await session.run(`machines allow 'aws#i-0*' --data DATA ${why}`, { world });
    await session.run("machines show 'aws#i-0*' --data DATA");
    await session.run('machines show aws#i-1 --data DATA');
  },

  async 'machines allow'(session) {
    const world = newWorld();
    await folderOf(session);
    await session.run(`machines allow 'aws#i-0*' --data DATA ${why}`, { world });
    await session.run(`machines allow 'tpm#*' --data DATA ${why}`, { world });
  },

  async 'machines remove'(session) {
    const world = newWorld();
    await folderOf(session);
    await session.run(`machines allow 'aws#i-0*' --data DATA ${why}`, { world });
    await session.run(`machines remove 'aws#i-0*' --data DATA ${why}`, { world });
    await session.run(`machines remove 'aws#i-0*' --data DATA ${why}`, { world });
  },

  async 'machines ek'({ run, call }) {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    call(
      'EK_SHA256',
      createHash('sha256')
        .update(publicKey.export({ type: 'spki', format: 'der' }))
        .digest('hex'),
    );
    const files = { 'ek.pem': publicKey.export({ type: 'spki', format: 'pem' }).toString(), 'ek.txt': 'no key' };
    await run('machines ek ek.pem', { files });
    await run('machines ek ek.txt', { files });
  },
};
