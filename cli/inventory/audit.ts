/** `countersign audit reconcile`: the signatures that CloudTrail has, against the ledger. docs/ca/inventory.md */
import { reconciler } from '../../core/inventory/reconcile.ts';
import type {
  Gap,
  Owner,
  Reconciler,
  Reconciliation,
  ReconcileScope,
  SignEvent,
} from '../../core/inventory/reconcile.ts';
import { formatOutput, table } from '../output/output.ts';
import { fullText, instantText } from '../output/tofu-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { commaList } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io, OpenTrace } from '../runtime/io.ts';
import { addPlace, placeOf } from '../trace/place.ts';
import type { PlaceFlags } from '../trace/place.ts';
import { readExport } from './export-file.ts';
import { dayMilliseconds, durationMilliseconds, instant, signaturesIn } from './range.ts';
import { signEventsIn } from './trail-files.ts';

interface Flags extends PlaceFlags {
  readonly from?: number;
  readonly to?: number;
  readonly logs?: string;
  readonly ledger?: string;
  readonly key?: readonly string[];
  readonly signRole?: string;
  readonly caRole?: string;
  readonly kubeadmRole?: string;
  readonly maxTtl: number;
  readonly output: string;
}

export function auditCommands(program: CliCommand, io: Io): void {
  const audit = program.command('audit').description('compare what was signed with what was recorded');

  addPlace(audit.command('reconcile'))
    .description(
      'find the ledger record of each signature that KMS made with the keys of the CAs, and the signature of each record.\n' +
        'Exit code 0: each has its record, or an intent that was open then. 1: something is not accounted for.',
    )
    .option('--from <time>', 'compare the signatures from this time on (default: 24 hours before --to)', instant)
    .option('--to <time>', 'and before this one (default: 30 minutes ago; CloudTrail is not complete before)', instant)
    .option('--logs <dir>', 'log files of a trail (.json, .json.gz) instead of CloudTrail’s event history')
    .option('--ledger <file>', 'a file of cert export instead of the table')
    .option('--key <arns>', 'keys of the CAs (default: output CaKeyArns of the stack)', commaList)
    .option('--sign-role <arn>', 'role of the sign function (default: output SignRoleArn of the stack)')
    .option('--ca-role <arn>', 'role of the ca function (default: output CaRoleArn of the stack)')
    .option('--kubeadm-role <arn>', 'role of the kubeadm function, if there is one (default: output KubeadmRoleArn)')
    .option('--max-ttl <duration>', 'lifetime that no certificate exceeds', durationMilliseconds, 366 * dayMilliseconds)
    .formats('table', 'json', 'yaml')
    .notes(
      'The event history has 90 days and answers two calls a second with 50 events each: for more, give the log files of a trail.',
      'It needs the policy OperatorPolicyArn, and cloudtrail:LookupEvents, which that policy does not contain.',
    )
    .examples(
      'countersign audit reconcile --cluster prod',
      'countersign audit reconcile --cluster prod --logs ./AWSLogs --from 2026-05-01 --to 2026-06-01 -o json',
      'countersign audit reconcile --logs ./AWSLogs --ledger prod.jsonl --key arn:… --sign-role arn:… --ca-role arn:… --from 2026-05-01 --to 2026-06-01',
    )
    .runs((flags: Flags) => reconcile(flags, io));
}

const minute = 60_000;

async function reconcile(flags: Flags, io: Io): Promise<ExitCode> {
  const to = flags.to ?? io.now() - 30 * minute;
  const from = flags.from ?? to - dayMilliseconds;
  if (from >= to) throw new CommandFailure(exitCodes.usage, '--to must be after --from');
  const { logs, ledger, key, signRole, caRole, kubeadmRole } = flags;
  const local = [logs, ledger, key, signRole, caRole].every((flag) => flag !== undefined);
  const place = local ? undefined : await placeOf(flags, io);
  if (place?.kind === 'embedded')
    throw new CommandFailure(exitCodes.usage, 'a CA in a folder of this machine has no key in KMS');
  const open = place === undefined ? undefined : await io.openTrace(place);
  try {
    const scope: ReconcileScope = {
      from,
      to,
      keys: new Set(key ?? (await outputOf(open, 'CaKeyArns', '--key')).split(' ')),
      signRole: signRole ?? (await outputOf(open, 'SignRoleArn', '--sign-role')),
      kubeadmRole: kubeadmRole ?? (await open?.output('KubeadmRoleArn')),
      caRole: caRole ?? (await outputOf(open, 'CaRoleArn', '--ca-role')),
    };
    const compared = reconciler(scope);
    if (ledger !== undefined) await addExport(ledger, scope, compared, io);
    else if (open !== undefined) {
      // A record that could be signed at `from` or later expires later.
      for await (const record of open.listByExpiry({ from, to: to + flags.maxTtl })) compared.addRecord(record);
      for await (const signature of open.listSignatures(signaturesIn(scope, io.now())))
        compared.addSignature(signature);
    }
    const region = place?.region;
    const events = logs === undefined ? io.lookUpSignatures({ region, from, to }) : signEventsIn(logs, io);
    for await (const event of events) compared.addEvent(event);
    return print(compared.finish(), scope, flags.output, io);
  } finally {
    open?.close();
  }
}

async function outputOf(open: OpenTrace | undefined, name: string, flag: string): Promise<string> {
  const value = await open?.output(name);
  if (value !== undefined && value !== '') return value;
  throw new CommandFailure(
    exitCodes.notFound,
    `the stack has no output ${name}: an earlier version deployed it`,
    `${flag} names what it would have`,
  );
}

async function addExport(file: string, { from, to }: ReconcileScope, compared: Reconciler, io: Io): Promise<void> {
  const records = readExport(file, io, compared.addSignature);
  for (;;) {
    const next = await records.next();
    if (next.done !== true) {
      compared.addRecord(next.value);
      continue;
    }
    const { from: begin, to: end } = next.value;
    if (begin <= from && end >= to) return;
    throw new CommandFailure(
      exitCodes.configuration,
      `${file} has the records that expire from ${instantText(begin)} to ${instantText(end)}, and not all that were signed from ${instantText(from)} to ${instantText(to)}`,
      'countersign cert export --from … --to … with --from at or before that of this command, and --to a lifetime behind it',
    );
  }
}

function print(found: Reconciliation, scope: ReconcileScope, output: string, io: Io): ExitCode {
  const { signatures, recorded, openIntents, caFunction, gaps } = found;
  const shown = {
    from: instantText(scope.from),
    to: instantText(scope.to),
    keys: [...scope.keys],
    signatures,
    recorded,
    openIntents: openIntents.map(({ event, ...owner }) => ({ ...shownEvent(event), ...shownOwner(owner) })),
    caFunction: caFunction.map(({ event, ...owner }) => ({ ...shownEvent(event), ...shownOwner(owner) })),
    gaps: gaps.map(shownGap),
  };
  io.out(formatOutput(output, shown, () => text(found, scope)));
  return gaps.length === 0 ? exitCodes.ok : exitCodes.refused;
}

function shownEvent({ at, requestId, eventId, keyId, principal }: SignEvent): object {
  return { at: instantText(at), requestId, eventId, keyId, principal };
}

function shownOwner(owner: Owner): object {
  if ('uid' in owner) return { uid: owner.uid };
  const { at, ...signature } = owner.signature;
  return { signature: { ...signature, at: instantText(at) } };
}

function shownGap(gap: Gap): object {
  if (gap.kind === 'noRecord') return { kind: gap.kind, event: shownEvent(gap.event) };
  if (gap.kind === 'otherKey') return { kind: gap.kind, event: shownEvent(gap.event), ...shownOwner(gap) };
  if ('signature' in gap) return { kind: gap.kind, ...shownOwner(gap) };
  const { uid, serial, openedAt, caKeyId, kmsRequestId } = gap.record;
  return { kind: gap.kind, record: { uid, serial, openedAt: instantText(openedAt), caKeyId, kmsRequestId } };
}

const mostLines = 50;

function text(found: Reconciliation, { from, to, keys }: ReconcileScope): string {
  const { signatures, recorded, openIntents, caFunction, gaps } = found;
  const head =
    `${signatures} signatures of ${keys.size} ${keys.size === 1 ? 'key' : 'keys'}, from ${instantText(from)} to ${instantText(to)}\n` +
    `${recorded} have their record, ${openIntents.length} belong to an intent that was open then, ${caFunction.length} of the ca function have theirs\n`;
  const lines = [
    ...openIntents.map(({ event, ...owner }) => [
      instantText(event.at),
      'open intent',
      ownerText(owner),
      fullText(event.requestId),
    ]),
    ...gaps.map(gapRow),
  ];
  const more = lines.length > mostLines ? `… and ${lines.length - mostLines} more: -o json\n` : '';
  const end = gaps.length === 0 ? 'Nothing is unaccounted for.\n' : `ALARM: ${gaps.length} not accounted for\n`;
  return `${head}${lines.length === 0 ? '' : `\n${table(lines.toReversed().slice(0, mostLines))}${more}`}\n${end}`;
}

function ownerText(owner: Owner): string {
  if ('uid' in owner) return `request ${fullText(owner.uid)}`;
  const { action, ca } = owner.signature;
  return `ca function, ${fullText(action)} of ${fullText(ca)}`;
}

function gapRow(gap: Gap): readonly string[] {
  switch (gap.kind) {
    case 'noRecord': {
      const { at, principal, requestId } = gap.event;
      return [instantText(at), 'ALARM: no record', `by ${fullText(principal)}`, fullText(requestId)];
    }
    case 'otherKey':
      return [instantText(gap.event.at), 'ALARM: other key', ownerText(gap), fullText(gap.event.requestId)];
    case 'noEvent': {
      if ('signature' in gap) {
        const { at, kmsRequestId = '' } = gap.signature;
        return [instantText(at), 'ALARM: no signature', ownerText(gap), fullText(kmsRequestId)];
      }
      const { openedAt, serial, kmsRequestId } = gap.record;
      return [instantText(openedAt), 'ALARM: no signature', `certificate ${serial}`, fullText(kmsRequestId ?? '')];
    }
    case 'unnamed':
      return [instantText(gap.record.openedAt), 'ALARM: record without', `certificate ${gap.record.serial}`, '-'];
  }
}
