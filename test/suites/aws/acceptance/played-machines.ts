/** Boots the instances that an emulator does not: their user data runs here, beside a strict fake of the metadata service. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import type { Machines } from '../../../../acceptance/world/emulator.ts';
import type { AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { startFakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import type { FakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { guard, temporaryFolder } from '../../../harness/processes/processes.ts';

export interface PlayedMachines extends Machines {
  stop(): Promise<void>;
}

interface Booted {
  readonly console: string;
  readonly imds: FakeImds;
  readonly bash: ChildProcess;
}

const account = '000000000000';

export function playMachines({ aws }: Pick<AwsPlatform, 'aws'>): PlayedMachines {
  const folder = temporaryFolder('machines');
  const machines = new Map<string, Promise<Booted>>();

  async function boot(instanceId: string, availabilityZone: string, userData: Uint8Array): Promise<Booted> {
    const region = availabilityZone.slice(0, -1);
    aws.launch({ account, region, instanceId, availabilityZone, interfaces: [] });
    const imds = await startFakeImds({ aws, instanceId });
    const [script, console] = ['sh', 'console'].map((end) => join(folder.path, `${instanceId}.${end}`)) as [
      string,
      string,
    ];
    writeFileSync(script, gunzipSync(userData));
    const bash = spawn('bash', [script], {
      // So that what it starts ends with it.
      detached: true,
      stdio: 'ignore',
      env: {
        PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
        TMPDIR: folder.path,
        AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url,
        COUNTERSIGN_CONSOLE: console,
      },
    });
    guard(`+pid ${bash.pid}`);
    return { console, imds, bash };
  }

  return {
    // MiniStack tells nothing of metadata options and interfaces.
    attestation: { instance: { httpTokensRequired: false, maxHopLimit: 'any', maxAttachSkewSeconds: 'any' } },
    async console(instanceId, zone, userData) {
      const booting = machines.get(instanceId) ?? boot(instanceId, zone, userData);
      machines.set(instanceId, booting);
      const { console } = await booting;
      for (let tries = 0; tries < 300 && !existsSync(console); tries += 1) await sleep(100);
      return readFileSync(console, 'utf8');
    },
    async stop() {
      for (const booting of machines.values()) {
        const { imds, bash } = await booting;
        try {
          process.kill(-(bash.pid ?? 0), 'SIGKILL');
        } catch {
          // It has ended.
        }
        guard(`-pid ${bash.pid}`);
        await imds.close();
      }
      folder.remove();
    },
  };
}
