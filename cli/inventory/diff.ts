/** `countersign config diff`: which issued requests other rules would decide differently. docs/ca/inventory.md */
import { certificateEntry } from '../../core/inventory/certificate-entry.ts';
import type { InventoryRecord } from '../../core/inventory/certificate-entry.ts';
import { compareDecisions, sameDecision } from '../../core/inventory/decide-again.ts';
import type { Compared, DecidedAgain } from '../../core/inventory/decide-again.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { refusalMessage } from '../../core/outcome/outcome.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { chooseCluster } from '../cluster/cluster-choice.ts';
import { durationText, formatOutput, table } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { readExport } from './export-file.ts';

interface Flags {
  readonly cluster?: string;
  readonly ledger: string;
  readonly output: string;
}

interface Row {
  readonly uid: string;
  readonly serial: string;
  readonly subject: string;
  readonly signerName?: string;
  readonly requester?: string;
  readonly before: string;
  readonly after: string;
}

/** Rows that are kept and shown; further ones are counted. */
const mostRows = 1_000;

export function addDiff(config: CliCommand, io: Io): void {
  config
    .command('diff')
    .description(
      'show which issued requests would be decided differently by another countersign.yaml.\n' +
        'Exit code 0: none. 1: some. 5: none, but some could not be decided from the ledger.',
    )
    .argument('<old>', 'countersign.yaml of today')
    .argument('<new>', 'the changed one')
    .requiredOption('--ledger <file>', 'records of countersign cert export; - reads standard input')
    .option('--cluster <name>', 'cluster of both files [COUNTERSIGN_CLUSTER]')
    .formats('table', 'json', 'yaml')
    .notes('The ledger has issued requests only. For requests that are refused today: countersign config test.')
    .examples(
      'countersign cert export --cluster prod > prod.jsonl',
      'countersign config diff countersign.yaml changed.yaml --cluster prod --ledger prod.jsonl',
    )
    .runs((before: string, after: string, flags: Flags) => diff(before, after, flags, io));
}

async function diff(old: string, changed: string, flags: Flags, io: Io): Promise<ExitCode> {
  const { cluster: name, ledger, output } = flags;
  const choice = name === undefined ? {} : { cluster: name };
  const { cluster: before } = await chooseCluster({ ...choice, config: old }, io);
  const { cluster: after } = await chooseCluster({ ...choice, config: changed }, io);
  const counts = { compared: 0, same: 0, different: 0, undecided: 0 };
  const different: Row[] = [];
  const undecided: Row[] = [];
  for await (const record of readExport(ledger, io)) {
    if (record.state !== 'issued') continue;
    counts.compared += 1;
    const compared = decisionsOn(record, before, after);
    if ([compared.before, compared.after].some(({ kind }) => kind === 'undecided')) {
      counts.undecided += 1;
      if (undecided.length < mostRows) undecided.push(rowOf(record, compared));
    } else if (sameDecision(compared)) counts.same += 1;
    else {
      counts.different += 1;
      if (different.length < mostRows) different.push(rowOf(record, compared));
    }
  }
  const shown = { cluster: after.name, ...counts, differentRequests: different, undecidedRequests: undecided };
  io.out(formatOutput(output, shown, () => text(counts, different, undecided)));
  if (counts.different > 0) return exitCodes.refused;
  return counts.undecided > 0 ? exitCodes.temporary : exitCodes.ok;
}

function decisionsOn(record: InventoryRecord, before: ClusterConfiguration, after: ClusterConfiguration): Compared {
  try {
    return compareDecisions(record, before, after);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CommandFailure(exitCodes.configuration, error.message);
  }
}

function rowOf(record: InventoryRecord, { before, after }: Compared): Row {
  const { uid, serial, subject, signerName, requester } = certificateEntry(record);
  return {
    uid,
    serial,
    subject,
    ...(signerName === undefined ? {} : { signerName }),
    ...(requester === undefined ? {} : { requester }),
    before: decisionText(before),
    after: decisionText(after),
  };
}

function decisionText(decision: DecidedAgain): string {
  switch (decision.kind) {
    case 'issue':
      return `issued by CA ${decision.ca} for ${durationText(decision.lifetimeSeconds)}, approval ${decision.approval}`;
    case 'refuse': {
      const [first, ...more] = decision.violations;
      if (first === undefined) return 'refused';
      const codes = [...new Set(decision.violations.map(({ code }) => code))].join(', ');
      return `refused (${codes}): ${refusalMessage([first, ...more])}`;
    }
    case 'ignore':
      return 'ignored: no profile has this signer name';
    case 'undecided':
      return `not decided: ${decision.why}`;
  }
}

function text(
  { compared, same, different, undecided }: Readonly<Record<'compared' | 'same' | 'different' | 'undecided', number>>,
  rows: readonly Row[],
  undecidedRows: readonly Row[],
): string {
  const parts = [...rows, ...undecidedRows].slice(0, 100).map((row) => {
    const { serial, subject, signerName = '-', requester = '-', before, after } = row;
    const head = table([[serial, printable(subject), printable(signerName), printable(requester)]]);
    return `${head}  before: ${before}\n  after:  ${after}\n`;
  });
  const shown = parts.length < different + undecided ? `… ${different + undecided - parts.length} more: -o json\n` : '';
  return `${parts.join('')}${shown}${compared} issued requests: ${same} decided as before, ${different} differently, ${undecided} not decided\n`;
}
