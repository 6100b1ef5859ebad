/** `countersign report`: what needs an operator, as a page, as JSON, or the part about audit mode as a table. docs/report.md */
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { withCluster } from '../cluster/cluster-access.ts';
import { formatOutput, table } from '../output/output.ts';
import { fullText } from '../output/tofu-text.ts';
import { addRegisterOptions } from '../register/place.ts';
import { auditOf } from './model/audit.ts';
import type { Audit } from './model/audit.ts';
import { reportOf } from './model/report.ts';
import { nodeNames, readFacts, readRecords } from './read.ts';
import type { ReadFlags } from './read.ts';

interface ReportFlags extends ReadFlags {
  readonly output: string;
}

export function reportCommand(program: CliCommand, io: Io): void {
  addRegisterOptions(program.command('report'))
    .description(
      'report about a cluster: with -o html a page of what needs action, otherwise the nodes that would be denied if audit mode\n' +
        'ended; the page also shows when certificates end, machines, requests, CAs and trust.\n' +
        'Exit code 0: no node would be denied. 1: some would. 5: not everything could be read.',
    )
    .option(
      '--kubeconfig <file>',
      'also read this cluster: its nodes; for html and json its requests too, and what it trusts',
    )
    .option('--context <name>', 'context of that kubeconfig')
    .option('--config <file>', 'with --data, for html and json: the countersign.yaml in use')
    .formats('table', 'html', 'json', 'yaml')
    .notes(
      'The table has the latest request of each node and signer in the last 25 h. Nodes renew their certificates rarely: a node',
      'without a request in that time is listed only with --kubeconfig.',
      'The page is one file that loads nothing. It shows names of nodes, machines and users, and no keys, tokens or evidence.',
      'Each part that cannot be read is named on it, with the reason.',
    )
    .examples(
      'countersign report --cluster prod',
      'countersign report --cluster prod --kubeconfig admin.conf -o html > prod.html',
      "countersign report --cluster prod -o json | jq -r '.attention[].text'",
      'countersign report --data ./data/demo -o html > demo.html',
    )
    .runs((flags: ReportFlags) => report(flags, io));
}

async function report(flags: ReportFlags, io: Io): Promise<ExitCode> {
  if (flags.context !== undefined && flags.kubeconfig === undefined)
    throw new CommandFailure(exitCodes.usage, '--context needs --kubeconfig');
  if (flags.kubeconfig !== undefined && !io.fileExists(flags.kubeconfig))
    throw new CommandFailure(exitCodes.notFound, `there is no file ${flags.kubeconfig}`);
  if (flags.output === 'table') return auditTable(flags, io);
  const whole = reportOf(await readFacts(flags, io));
  if (flags.output === 'html') {
    const { reportPage } = await import('./page/page.ts');
    io.out(reportPage(whole));
  } else io.out(formatOutput(flags.output, whole, () => ''));
  if ((whole.failing ?? 0) > 0) return exitCodes.refused;
  return whole.parts.some(({ state }) => state === 'failed') ? exitCodes.temporary : exitCodes.ok;
}

async function auditTable(flags: ReportFlags, io: Io): Promise<ExitCode> {
  const nodes = flags.kubeconfig === undefined ? [] : await withCluster(flags, io, nodeNames);
  const audit = auditOf(await readRecords(flags, io), nodes);
  io.out(auditText(audit));
  return audit.failing === 0 ? exitCodes.ok : exitCodes.refused;
}

function auditText({ nodes, failing, passing, evidence, rows }: Audit): string {
  const used = Object.entries(evidence).map(([version, names]) => `${version} by ${names.length}\n`);
  const listed = table([
    ['NODE', 'SIGNER', 'WOULD BE', 'WHY', 'SEEN'],
    ...rows.map(({ node, signerName = '-', wouldBe, message = '-', seen = '-' }) => [
      fullText(node),
      fullText(signerName),
      wouldBe,
      fullText(message),
      seen,
    ]),
  ]);
  return `${listed}\n${used.join('')}${nodes} nodes: ${failing} would fail, ${passing} pass\n`;
}
