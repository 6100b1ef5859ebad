/** Reads what `countersign cert export` wrote, line by line. */
import type { InventoryRecord } from '../../core/inventory/certificate-entry.ts';
import { readExportLine } from '../../core/inventory/export-line.ts';
import type { ExportEnd } from '../../core/inventory/export-line.ts';
import type { SignatureRecord } from '../../core/ports/signature-log.ts';
import { maxInputBytes } from '../runtime/io.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

/**
 * The records; the end of the export when all were read. The signatures of the ca function go to `onSignature`. Throws CommandFailure if a
 * line is wrong or the end is missing.
 */
export async function* readExport(
  file: string,
  io: Io,
  onSignature: (signature: SignatureRecord) => void = () => {},
): AsyncGenerator<InventoryRecord, ExportEnd> {
  let number = 0;
  let records = 0;
  let signatures = 0;
  let end: ExportEnd | undefined;
  for await (const line of linesOf(file, io)) {
    number += 1;
    const read = readExportLine(line);
    const problem = end === undefined ? (read.ok ? undefined : read.problem) : 'it stands behind the end of the export';
    if (problem !== undefined) throw new CommandFailure(exitCodes.configuration, `${file}:${number}: ${problem}`);
    if (!read.ok) continue;
    if ('end' in read.value) ({ end } = read.value);
    else if ('signature' in read.value) {
      signatures += 1;
      onSignature(read.value.signature);
    } else {
      records += 1;
      yield read.value.record;
    }
  }
  if (end === undefined || end.records !== records || end.signatures !== signatures)
    throw new CommandFailure(
      exitCodes.configuration,
      `${file} is not a complete export: ${end === undefined ? 'its last line is missing' : `it has ${records} of ${end.records} records and ${signatures} of ${end.signatures} signatures`}`,
      'countersign cert export writes one; its exit code is 0 only if it is complete',
    );
  return end;
}

async function* linesOf(file: string, io: Io): AsyncGenerator<string> {
  try {
    yield* io.lines(file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') throw new CommandFailure(exitCodes.notFound, `there is no file ${file}`);
    const why = code === 'EFBIG' ? `a line is longer than ${maxInputBytes / 1_048_576} MiB` : code || String(error);
    throw new CommandFailure(exitCodes.configuration, `${file} cannot be read (${why})`);
  }
}
