/** `countersign cert`: the certificates that this signer issued. docs/ca/inventory.md */
import { InvalidArgumentError, Option } from 'commander';
import { certificateEntry, entryJson } from '../../core/inventory/certificate-entry.ts';
import type { CertificateEntry, InventoryRecord } from '../../core/inventory/certificate-entry.ts';
import { exportEndLine, exportLine, exportSignatureLine } from '../../core/inventory/export-line.ts';
import { revocationFinder, revocationJson } from '../../core/inventory/revocation-finder.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import { formatOutput } from '../output/output.ts';
import { fullText } from '../output/tofu-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, OpenTrace } from '../runtime/io.ts';
import { addPlace, placeOf, serialNumber } from '../trace/place.ts';
import type { PlaceFlags } from '../trace/place.ts';
import { entriesTable, entryText } from './entry-text.ts';
import { readExport } from './export-file.ts';
import { addFilters, matcherOf } from './filters.ts';
import type { FilterFlags } from './filters.ts';
import { addRange, rangeOf, signaturesIn } from './range.ts';
import type { RangeFlags } from './range.ts';

interface ListFlags extends PlaceFlags, RangeFlags {
  readonly state: IssuingRecord['state'] | 'any';
  readonly limit: number;
  readonly after?: string;
  readonly output: string;
}

interface FindFlags extends ListFlags, FilterFlags {
  readonly export?: string;
}

/** The command `cert`, for further commands about certificates. */
export function certCommands(program: CliCommand, io: Io): CliCommand {
  const cert = program
    .command('cert')
    .description('the certificates that this signer issued: list, find, show, export');

  addPage(addRange(addPlace(cert.command('list'))))
    .page('ca/inventory.md')
    .description('list certificates by the time at which they expire, the earliest first')
    .examples(
      'countersign cert list --cluster prod --expiring 30d',
      'countersign cert list --cluster prod --from 2026-05-01 --to 2026-06-01 -o wide',
      'countersign cert list --data ./data/demo -o json',
    )
    .runs(async (flags: ListFlags) => {
      await list(flags, inLedger(flags, io), () => true, io);
    });

  addPage(addFilters(addRange(addPlace(cert.command('find')))))
    .description(
      'list the certificates with certain names, machines, signers or requesters; exit code 4: no certificate has them',
    )
    .option('--export <file>', 'search in this file of cert export instead of the cluster')
    .notes(
      'The table has indexes by expiry and by serial number only. So find reads every record of the range, page by page: give a short',
      'range, or search in an export. Several filters mean certificates to which all apply.',
    )
    .examples(
      'countersign cert find --cluster prod --node worker-3',
      'countersign cert find --export prod.jsonl --requester system:serviceaccount:ci:deployer -o wide',
    )
    .runs(async (flags: FindFlags) => {
      const matches = matcherOf(flags);
      const source = flags.export === undefined ? inLedger(flags, io) : inExport(flags.export, flags, io);
      const { entries } = await list(flags, source, matches, io);
      return entries.length === 0 ? exitCodes.notFound : exitCodes.ok;
    });

  addPlace(cert.command('show'))
    .description('show one certificate; exit code 4: the ledger does not have it')
    .argument('<serial|uid>', 'its serial number (hex, as openssl prints it), or the UID of its request')
    .formats('table', 'json', 'yaml')
    .examples(
      'countersign cert show 3f9c0a1b… --cluster prod',
      'countersign cert show 6f2a4c1e-0f5c-4b1e-9c55-3f0a2a5f7b11 --cluster prod -o yaml',
    )
    .runs((wanted: string, flags: PlaceFlags & { readonly output: string }) => show(wanted, flags, io));

  addRange(addPlace(cert.command('export')))
    .description('write the records of a range to standard output, one JSON object a line, for audits and config diff')
    .notes('All states. The last line tells how many records there are; without it the export is not complete.')
    .examples(
      'countersign cert export --cluster prod > prod.jsonl',
      'countersign cert export --cluster prod --from 2025-01-01 --to 2027-01-01 > all.jsonl',
    )
    .runs((flags: PlaceFlags & RangeFlags) => exportAll(flags, io));

  return cert;
}

const mostRows = 10_000;

function addPage(command: CliCommand): CliCommand {
  return command
    .addOption(
      new Option('--state <state>', 'intent: begun and not signed; expired: given up')
        .choices(['issued', 'intent', 'expired', 'any'])
        .default('issued'),
    )
    .addOption(new Option('--limit <n>', `at most so many, up to ${mostRows}`).argParser(rowCount).default(100))
    .option('--after <uid>', 'the next page: only those behind the certificate of this request')
    .formats('table', 'wide', 'json', 'yaml');
}

function rowCount(text: string): number {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > mostRows) throw new InvalidArgumentError(`It must be 1 to ${mostRows}.`);
  return count;
}

async function withRecords<T>(flags: PlaceFlags, io: Io, work: (open: OpenTrace) => Promise<T>): Promise<T> {
  const open = await io.openTrace(await placeOf(flags, io));
  try {
    return await work(open);
  } finally {
    open.close();
  }
}

type Matches = (entry: CertificateEntry) => boolean;

/** Opens records for one reader, and closes them behind it. */
type Source = <T>(read: (records: AsyncIterable<InventoryRecord>) => Promise<T>) => Promise<T>;

interface Page {
  readonly entries: readonly CertificateEntry[];
  /** The UID of the last entry, if there are more. */
  readonly next?: string;
}

async function list(flags: ListFlags, source: Source, matches: Matches, io: Io): Promise<Page> {
  const { output, limit, state } = flags;
  const wanted: Matches = (entry) => (state === 'any' || entry.state === state) && matches(entry);
  const { entries, next } = await source((records) => firstOf(records, wanted, limit));
  const shown = { certificates: entries.map(entryJson), ...(next === undefined ? {} : { next }) };
  io.out(formatOutput(output, shown, () => entriesTable(entries, output === 'wide')));
  if (next !== undefined) io.err(`countersign: there are more: --after ${fullText(next)}\n`);
  return { entries, ...(next === undefined ? {} : { next }) };
}

/** Reads no more records than it needs to know whether there are more. */
async function firstOf(records: AsyncIterable<InventoryRecord>, wanted: Matches, limit: number): Promise<Page> {
  const entries: CertificateEntry[] = [];
  for await (const record of records) {
    const entry = certificateEntry(record);
    if (!wanted(entry)) continue;
    const last = entries.at(-1);
    if (entries.length === limit && last !== undefined) return { entries, next: last.uid };
    entries.push(entry);
  }
  return { entries };
}

function inLedger(flags: ListFlags, io: Io): Source {
  const range = rangeOf(flags, io);
  return (read) =>
    withRecords(flags, io, async (open) => {
      if (flags.after === undefined) return read(open.listByExpiry(range));
      const after = await open.findRecord(flags.after);
      if (after !== undefined) return read(open.listByExpiry({ ...range, after }));
      throw new CommandFailure(exitCodes.notFound, `the ledger has no record of ${fullText(flags.after)}`);
    });
}

/** The records of the file in its order, those of the range if one is given. */
function inExport(file: string, flags: ListFlags, io: Io): Source {
  const { expiring, from, to, after } = flags;
  const range = (expiring ?? from ?? to) === undefined ? { from: 0, to: Infinity } : rangeOf(flags, io);
  return (read) =>
    read(
      (async function* () {
        let behind = after === undefined;
        for await (const record of readExport(file, io)) {
          if (behind && record.notAfter >= range.from && record.notAfter < range.to) yield record;
          behind ||= record.uid === after;
        }
      })(),
    );
}

async function show(wanted: string, flags: PlaceFlags & { readonly output: string }, io: Io): Promise<void> {
  const { record, verdict, revocation } = await withRecords(flags, io, async (open) => {
    const uid = (await uidOfSerial(wanted, open)) ?? wanted;
    const record = await open.findRecord(uid);
    if (record === undefined)
      throw new CommandFailure(
        exitCodes.notFound,
        `the ledger has no certificate ${fullText(wanted)}`,
        'countersign cert find searches by names, machines and requesters',
      );
    const verdict = await open.findVerdict(uid, io.now());
    return { record, verdict, revocation: await open.findRevocation(record.caKeyId, record.serial) };
  });
  const entry = certificateEntry(record);
  const shown = {
    ...entryJson(entry),
    ...(verdict === undefined ? {} : { verdict: verdict.decision }),
    ...(revocation === undefined ? {} : { revoked: revocationJson(revocation) }),
  };
  io.out(formatOutput(flags.output, shown, () => entryText(entry, verdict, revocation)));
}

/** A text of hexadecimal digits may also be a UID, so a serial number that the ledger does not have is tried as one. */
async function uidOfSerial(text: string, open: OpenTrace): Promise<string | undefined> {
  return looksLikeSerial(text) ? open.findSerial(serialNumber(text)) : undefined;
}

function looksLikeSerial(text: string): boolean {
  return /^(?:0x)?[0-9a-f:]{1,64}$/i.test(text);
}

async function exportAll(flags: PlaceFlags & RangeFlags, io: Io): Promise<void> {
  const range = rangeOf(flags, io);
  await withRecords(flags, io, async (open) => {
    let records = 0;
    const revocationOf = revocationFinder((caKeyId, now) => open.listRevocations(caKeyId, now), range.from);
    for await (const record of open.listByExpiry(range)) {
      io.out(`${exportLine(record, await revocationOf(record))}\n`);
      records += 1;
    }
    let signatures = 0;
    for await (const signature of open.listSignatures(signaturesIn(range, io.now()))) {
      io.out(`${exportSignatureLine(signature)}\n`);
      signatures += 1;
    }
    io.out(`${exportEndLine({ records, signatures, ...range })}\n`);
    const [from, to] = [range.from, range.to].map((instant) => new Date(instant).toISOString());
    io.err(`countersign: ${records} records that expire from ${from} to ${to}\n`);
  });
}
