/** Two instances whose user data is a program of the run. They have no key pair, no instance profile and no rights. */
import {
  DescribeInstancesCommand,
  GetConsoleOutputCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import type { Instance } from '@aws-sdk/client-ec2';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { undefinedIf } from '../../cli/aws/calls.ts';
import { bundle } from '../../lib/bundle.ts';
import { newestText } from '../probe/console-lines.ts';
import type { MachineTask } from '../probe/machine.ts';
import { runTag } from '../world/clusters.ts';
import type { Site } from '../world/step.ts';
import { eventually } from '../world/wait.ts';

/** https://docs.aws.amazon.com/linux/al2023/ug/ec2.html */
export const imageParameter = '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64';

/** Of EC2, before it is encoded. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html */
export const userDataBytes = 16_384;

/**
 * A script with the program in it, compressed, which cloud-init undoes. Node.js comes from Amazon Linux's own repository, and
 * nothing else from the network: what the instance has to say it writes to its console.
 */
export function userData(task: MachineTask): Buffer {
  const root = resolve(import.meta.dirname, '../..');
  const { files } = bundle({ root, entry: 'acceptance/probe/machine.ts', constants: {} });
  const program = Buffer.from(files.get('index.js') ?? []).toString('utf8');
  const script = `#!/bin/bash
# Tests name another one.
console=\${COUNTERSIGN_CONSOLE:-/dev/console}
say() { echo "${task.run}: $*" >> "$console"; }
program=$(mktemp)
cat > "$program" <<'END-OF-PROGRAM'
${program}
END-OF-PROGRAM
if ! node=$(command -v node-24 || command -v node); then
  # The package manager needs more than the 512 MB of a t4g.nano.
  dd if=/dev/zero of=/swap bs=1M count=1024 status=none && chmod 600 /swap && mkswap -q /swap && swapon /swap
  said=$(dnf install --quiet --assumeyes nodejs24 2>&1) || say "dnf: $said"
  node=/usr/bin/node-24
fi
said=$("$node" -e 'const [, program, task, console] = process.argv; require(program).handler(JSON.parse(task), console)' \\
  "$program" '${JSON.stringify(task)}' "$console" 2>&1) || say "node: $said"
# Ends the instance, which terminates then, even if the run cannot.
[ "$console" != /dev/console ] || shutdown -h now
`;
  const bytes = gzipSync(script, { level: 9 });
  if (bytes.length > userDataBytes)
    throw new Error(`the user data has ${bytes.length} bytes, of at most ${userDataBytes}`);
  return bytes;
}

/** Registers their removal first. Resolves to their descriptions. */
export async function startMachines(
  site: Site,
  { nodeName, data }: { readonly nodeName: string; readonly data: Buffer },
): Promise<readonly Instance[]> {
  const { aws, undo, name, place, subnet, emulator } = site;
  const { Parameter: image } = (await aws.ssm
    .send(new GetParameterCommand({ Name: imageParameter }))
    // Emulators take any image.
    .catch(emulator === undefined ? throwIt : undefinedIf('ParameterNotFound'))) ?? { Parameter: undefined };
  undo.register({
    what: `instances with the tag ${runTag}=${name}`,
    command: `aws ec2 terminate-instances --region ${place.region} --instance-ids $(aws ec2 describe-instances --region ${place.region} --filters Name=tag:${runTag},Values=${name} --query 'Reservations[].Instances[].InstanceId' --output text)`,
    async undo() {
      const ids = (await describeMachines(site)).flatMap(({ InstanceId: id, State }) =>
        id === undefined || State?.Name === 'terminated' ? [] : [id],
      );
      if (ids.length > 0) await terminateMachines(site, ids);
      return [];
    },
  });
  const { Instances: made = [] } = await aws.ec2.send(
    new RunInstancesCommand({
      ClientToken: name,
      ImageId: image?.Value ?? 'ami-00000000',
      InstanceType: 't4g.nano',
      MinCount: 2,
      MaxCount: 2,
      ...(subnet === undefined ? {} : { SubnetId: subnet }),
      MetadataOptions: { HttpEndpoint: 'enabled', HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      InstanceInitiatedShutdownBehavior: 'terminate',
      UserData: data.toString('base64'),
      TagSpecifications: [
        {
          ResourceType: 'instance',
          Tags: [
            { Key: runTag, Value: name },
            { Key: 'Name', Value: nodeName },
          ],
        },
      ],
    }),
  );
  return made;
}

function throwIt(error: unknown): never {
  throw error;
}

export async function describeMachines({ aws, name }: Site): Promise<readonly Instance[]> {
  const Filters = [{ Name: `tag:${runTag}`, Values: [name] }];
  const { Reservations: found = [] } = await aws.ec2.send(new DescribeInstancesCommand({ Filters }));
  return found.flatMap(({ Instances: all = [] }) => all);
}

/** Resolves when they are terminated, which EC2 never reverts. */
export async function terminateMachines(site: Site, ids: readonly string[]): Promise<void> {
  await site.aws.ec2.send(new TerminateInstancesCommand({ InstanceIds: [...ids] }));
  const ended = await eventually(site, 5, async () => {
    const all = await describeMachines(site);
    // EC2 forgets an instance an hour after its end, emulators sooner.
    const hasEnded = ({ InstanceId: id = '', State }: Instance) => !ids.includes(id) || State?.Name === 'terminated';
    return all.every(hasEnded) || undefined;
  });
  if (ended === undefined) throw new Error(`${ids.join(', ')} not terminated within five minutes`);
}

/** A request of a later round than `after`, from the console of the instance. Throws what the console says instead. */
export async function requestFrom(
  site: Site,
  { InstanceId: id = '', Placement }: Instance,
  { data, after }: { readonly data: Buffer; readonly after: number },
): Promise<{ readonly round: number; readonly text: string }> {
  const { aws, name, emulator } = site;
  let said = '';
  const found = await eventually(site, 10, async () => {
    const asked = aws.ec2.send(new GetConsoleOutputCommand({ InstanceId: id, Latest: true }));
    const { machines } = emulator ?? {};
    if (machines === undefined) said = Buffer.from((await asked).Output ?? '', 'base64').toString('utf8');
    else {
      // The right to ask is needed here too.
      await asked.catch((error: unknown) => {
        if (error instanceof Error && /Unauthorized|AccessDenied/.test(error.name)) throw error;
      });
      said = await machines.console(id, Placement?.AvailabilityZone ?? '', data);
    }
    return newestText(said, name, after);
  });
  if (found !== undefined) return found;
  const own = said.split('\n').filter((line) => line.includes(`${name}: `));
  throw new Error(`no request on the console of ${id}: ${own.slice(-3).join(' ').slice(0, 500) || 'it says nothing'}`);
}
