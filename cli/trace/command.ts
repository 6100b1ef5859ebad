import { InvalidArgumentError, Option } from 'commander';
import { addClusterAccess } from '../cluster/cluster-access.ts';
import { goSeconds } from '../cluster/token-rotation.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput } from '../output/output.ts';
import { shownTrace, traceText, unreadText } from './trace-text.ts';
import { collect } from './collect.ts';
import type { Subject } from './identify.ts';
import { addPlace, placeOf, serialNumber } from './place.ts';
import type { PlaceFlags } from './place.ts';

interface Flags extends PlaceFlags {
  readonly serial?: string;
  readonly since: number;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output: string;
}

export function traceCommand(program: CliCommand, io: Io): void {
  addPlace(addClusterAccess(program.command('trace')))
    .page('runbook.md')
    .description(
      'follow one request: the object, its Events and the relay’s log in the cluster, the logs of attest and sign, the\n' +
        'verdict, and the record in the ledger. Exit code 4: nothing is known about it; 5: not everything could be read.',
    )
    .argument('[request]', 'name of the CertificateSigningRequest, or its UID')
    .addOption(
      new Option('--serial <hex>', 'instead of the request: the serial number of a certificate').argParser(
        serialNumber,
      ),
    )
    .addOption(
      new Option('--since <duration>', 'how far back to look in the logs if only the name is known, such as 90m or 48h')
        .argParser(durationSeconds)
        .default(86_400, '24h'),
    )
    .formats('table', 'json', 'yaml')
    .notes(
      'A UID is recognised by its form, so a request whose name looks like a UID is found by its UID only.',
      'It needs the policy OperatorPolicyArn of the stack, and in the cluster: get certificatesigningrequests, list events in',
      'the namespace default, list pods, get pods/log. Without some of these it shows the rest and names what it did not read.',
    )
    .examples(
      'countersign trace node-csr-1 --cluster prod',
      'countersign trace 6f2a4c1e-0f5c-4b1e-9c55-3f0a2a5f7b11 --config countersign.yaml --cluster prod -o json',
      'countersign trace --serial 3f9c0a… --cluster prod',
    )
    .runs((request: string | undefined, flags: Flags) => trace(request, flags, io));
}

async function trace(request: string | undefined, flags: Flags, io: Io): Promise<ExitCode> {
  const subject = subjectOf(request, flags);
  const place = await placeOf(flags, io);
  const { kubeconfig, context, since: sinceSeconds } = flags;
  const open = await io.openTrace(place);
  try {
    const { trace: found, unread } = await collect(subject, open, { kubeconfig, context, sinceSeconds }, io);
    if (found === undefined || found.moments.length === 0) {
      io.err(unreadText(unread));
      throw unread.length === 0
        ? new CommandFailure(exitCodes.notFound, 'there is no such request', notFoundHint)
        : new CommandFailure(exitCodes.temporary, 'no such request was found in what could be read', notFoundHint);
    }
    const shown = shownTrace(found, unread, place.kind === 'deployed' ? place.cluster : undefined);
    io.out(formatOutput(flags.output, shown, () => traceText(shown)));
    return exitCodes.ok;
  } finally {
    open.close();
  }
}

const notFoundHint =
  'a name is found in the cluster, or in the logs of the last hours (--since); a UID also in the ledger';

/** As the API server makes them (RFC 9562). */
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function subjectOf(request: string | undefined, { serial }: Flags): Subject {
  if ((request === undefined) === (serial === undefined))
    throw new CommandFailure(exitCodes.usage, 'which request? give its name or its UID, or a certificate by --serial');
  if (serial !== undefined) return { serial };
  const name = request ?? '';
  return uuid.test(name) ? { uid: name } : { name };
}

function durationSeconds(text: string): number {
  const seconds = goSeconds(text);
  if (seconds === undefined) throw new InvalidArgumentError('It must look like 30m, 24h or 1h30m.');
  return seconds;
}
