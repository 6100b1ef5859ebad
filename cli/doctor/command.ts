/** `countersign doctor`. */
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { addStatusOptions } from '../status/command.ts';
import type { StatusFlags } from '../status/status.ts';
import { doctor } from './doctor.ts';

export function doctorCommand(program: CliCommand, io: Io): void {
  addStatusOptions(program.command('doctor'))
    .description(
      'check from here whether a set-up can work: Node.js, file, logins, clocks, rights, approvers. It only reads',
    )
    .notes(
      'Each line that does not hold says what to do. Exit codes: 0 everything holds, 1 something must be mended, 5 nothing wrong was seen, and not',
      'everything could be checked. countersign status says whether a cluster works now. What could not be checked names the right that is missing.',
      'On AWS it needs cloudformation:DescribeStacks; in the cluster: list deployments, pods, clusterrolebindings, create subjectaccessreviews.',
    )
    .examples(
      'countersign doctor --config countersign.yaml --cluster prod',
      'countersign doctor --skip-aws',
      'countersign doctor --cluster prod -o json | jq -r \'.checks[] | select(.result == "fail") | .mend\'',
    )
    .runs((flags: StatusFlags) => doctor(flags, io));
}
