/** `csr list`, `show`, `approve` and `deny`: the requests of a cluster in an operator's hands. */
import { Option } from 'commander';
import { printable } from '../../core/outcome/printable-text.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { formatOutput } from '../output/output.ts';
import { fullText } from '../output/tofu-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { decide, fingerprintOf } from './decide.ts';
import type { Decided, Decision } from './decide.ts';
import { requesterCommands } from './create.ts';
import { listRequests, readRequest, viewOf } from './read-requests.ts';
import { requestText, requestsTable } from './request-text.ts';
import { requestStates } from './request-view.ts';
import type { RequestState, RequestView } from './request-view.ts';
import { watchRequests } from './watch.ts';

interface Filter {
  readonly state?: RequestState;
  readonly signerName?: string;
  readonly requester?: string;
}
interface ListFlags extends ClusterAccessFlags, Filter {
  readonly watch?: boolean;
  readonly output: string;
}
interface DecideFlags extends ClusterAccessFlags, Omit<Filter, 'state'> {
  readonly reason: string;
  readonly keyFingerprint?: string;
  readonly allPending?: boolean;
  readonly dryRun?: boolean;
  readonly output: string;
}

export function requestCommands(csr: CliCommand, io: Io): void {
  requesterCommands(csr, io);

  addFilter(addClusterAccess(csr.command('list')))
    .description('list the requests of a cluster, the oldest first')
    .addOption(new Option('--state <state>', 'only these').choices(requestStates))
    .option('-w, --watch', 'then show each request that is new or changed, until the command is stopped')
    .formats('table', 'wide', 'json', 'yaml')
    .notes('-o wide adds the reason of the decision, the attested machine and the SHA-256 of the key.')
    .examples(
      'countersign csr list --state pending',
      'countersign csr list --signer-name kubernetes.io/kubelet-serving -o wide',
      'countersign csr list --state pending --watch',
    )
    .runs(async (flags: ListFlags) => {
      const look = async () => {
        const requests = (await withCluster(flags, io, listRequests)).filter((request) => isWanted(request, flags));
        return requests.toSorted((a, b) => compare(a.createdAt, b.createdAt) || compare(a.name, b.name));
      };
      const wide = flags.output === 'wide';
      if (flags.watch === true) {
        if (!wide && flags.output !== 'table')
          throw new CommandFailure(exitCodes.usage, '--watch prints rows: -o table or -o wide');
        return watchRequests({
          look,
          print: (text) => io.out(text),
          now: () => io.now(),
          wide,
          pause: (ms) => io.pause(ms),
        });
      }
      const sorted = await look();
      io.out(formatOutput(flags.output, sorted, () => requestsTable(sorted, wide, io.now())));
      return undefined;
    });

  addClusterAccess(csr.command('show'))
    .description('show one request: requester, subject, names, key and state; csr explain shows the rules')
    .argument('<name>', 'its name in the cluster')
    .formats('table', 'json', 'yaml')
    .examples('countersign csr show node-csr-1', 'countersign csr show node-csr-1 -o json')
    .runs(async (name: string, flags: ListFlags) => {
      const request = viewOf(await withCluster(flags, io, (cluster) => readRequest(cluster, name)), name);
      io.out(formatOutput(flags.output, request, () => requestText(request, io.now())));
    });

  addDecision(csr.command('approve'), 'Approved', io)
    .description(
      'approve requests, with your own rights in the cluster.\n' +
        'Exit code 1: a request is denied, failed, cannot be read, or has another key. The others are approved.',
    )
    .option('--key-fingerprint <sha256>', 'only if its key has this SHA-256, which the requester told you')
    .notes(
      'An approval says that the signer may sign. Its rules still decide (countersign csr explain), and a profile with attestation',
      'still demands evidence.',
    )
    .examples(
      'countersign csr approve node-csr-1 node-csr-2 --reason "ticket 4711"',
      'countersign csr approve web --reason "known key" --key-fingerprint 3f7a…',
      'countersign csr approve --all-pending --signer-name example.com/web --reason "new web servers" --dry-run',
    );

  addDecision(csr.command('deny'), 'Denied', io)
    .description(
      'deny requests, with your own rights in the cluster. A denial is final: the requester must make another request.\n' +
        'Exit code 1: a request is approved, failed, or has its certificate. The others are denied.',
    )
    .examples('countersign csr deny node-csr-1 --reason "unknown machine"');
}

function addFilter(command: CliCommand): CliCommand {
  return command
    .option('--signer-name <name>', 'only requests for this signer')
    .option('--requester <user>', 'only requests of this user');
}

function addDecision(command: CliCommand, type: Decision['type'], io: Io): CliCommand {
  return addFilter(addClusterAccess(command))
    .argument('[names...]', 'their names in the cluster')
    .requiredOption('--reason <text>', 'why; everyone who may read the request reads it')
    .option('--all-pending', 'instead of names: all pending requests for the signer of --signer-name')
    .option('--dry-run', 'only show which requests it would be')
    .formats('table', 'json', 'yaml')
    .runs((names: readonly string[], flags: DecideFlags) => decideAll(type, names, flags, io));
}

async function decideAll(
  type: Decision['type'],
  names: readonly string[],
  flags: DecideFlags,
  io: Io,
): Promise<ExitCode> {
  const { reason: message, keyFingerprint, allPending = false, signerName, requester } = flags;
  if (allPending ? names.length > 0 || signerName === undefined : names.length === 0)
    throw new CommandFailure(exitCodes.usage, 'name requests, or all of a signer: --all-pending --signer-name NAME');
  if (!allPending && (signerName ?? requester) !== undefined)
    throw new CommandFailure(
      exitCodes.usage,
      '--signer-name and --requester choose among all pending requests, not names',
    );
  if (keyFingerprint !== undefined && names.length !== 1)
    throw new CommandFailure(exitCodes.usage, '--key-fingerprint is for one request by its name');
  const decision = {
    type,
    message,
    ...(keyFingerprint === undefined ? {} : { keyFingerprint: fingerprintOf(keyFingerprint) }),
  };
  return withCluster(flags, io, async (cluster) => {
    await announce(cluster, io);
    const wanted = allPending
      ? (await listRequests(cluster)).filter((request) => isWanted(request, { ...flags, state: 'pending' }))
      : undefined;
    const chosen = wanted?.map(({ name }) => name) ?? [...new Set(names)];
    if (flags.dryRun === true) {
      const requests =
        wanted ?? (await Promise.all(chosen.map(async (name) => viewOf(await readRequest(cluster, name), name))));
      io.out(formatOutput(flags.output, requests, () => requestsTable(requests, true, io.now())));
      return exitCodes.ok;
    }
    const results: Decided[] = [];
    for (const name of chosen) {
      const decided = await decide(cluster, name, decision);
      results.push(decided);
      if (flags.output === 'table') io.out(decidedText(decided, type));
    }
    if (flags.output !== 'table') io.out(formatOutput(flags.output, results, () => ''));
    return results.some(({ outcome }) => outcome === 'refused') ? exitCodes.refused : exitCodes.ok;
  });
}

function decidedText({ name, outcome, message = '', request }: Decided, type: Decision['type']): string {
  const done = type === 'Approved' ? 'approved' : 'denied';
  if (outcome === 'refused') return `${fullText(name)}: not ${done}: ${printable(message)}\n`;
  const asked = request?.asked;
  const what = asked === undefined || 'problem' in asked ? '' : ` ${printable(asked.subject)},`;
  const rest =
    request === undefined ? '' : `:${what} for ${printable(request.requester)} by ${printable(request.signerName)}`;
  return `${fullText(name)} ${outcome === 'already' ? `was ${done} before` : done}${rest}\n`;
}

function isWanted({ state, signerName, requester }: RequestView, filter: Filter): boolean {
  return (
    (filter.state === undefined || filter.state === state) &&
    (filter.signerName === undefined || filter.signerName === signerName) &&
    (filter.requester === undefined || filter.requester === requester)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
