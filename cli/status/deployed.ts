/** What AWS has of a cluster: its CAs, its tables, and the last fault in the logs of its functions. */
import { X509Certificate } from 'node:crypto';
import { objectOf, parsedObject } from '../../core/encoding/json-object.ts';
import { printableUpTo } from '../../core/outcome/printable-text.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { callCaFunction } from '../aws/deployed-ca.ts';
import { CommandFailure } from '../runtime/exit.ts';
import type { Io, OpenTrace } from '../runtime/io.ts';
import { functions } from '../trace/reader.ts';
import type { DeployedPlace } from '../trace/place.ts';
import { agoText } from './ago-text.ts';
import type { Health } from './endpoint.ts';
import { rowsOr, unknown } from './row.ts';
import type { StatusRow } from './row.ts';

const day = 86_400_000;
/** The default of `alarms.caDaysLeft`. */
const fewestDays = 90;

/** From the ca function, which compares each CA with its key; from the endpoint if the login may not call that function. */
export async function lookAtCas(
  place: DeployedPlace,
  health: Health | undefined,
  io: Io,
): Promise<readonly StatusRow[]> {
  const { cluster, region } = place;
  const least = leastDays(place);
  const now = io.now();
  const rows = await rowsOr({ id: 'ca', check: 'the CAs are in force' }, async () => {
    const { cas } = await callCaFunction(
      { action: 'show' },
      { cluster, ...(region === undefined ? {} : { region }) },
      io,
    );
    return (Array.isArray(cas) ? (cas as readonly unknown[]) : []).map((ca) => rowOfCa(objectOf(ca), least, now));
  });
  const [only] = rows;
  return only?.result !== 'unknown' || health === undefined ? rows : casOfHealth(place, health, now, ` (${only.seen})`);
}

/** As the endpoint says. Those that are not in force are not among them. */
export function casOfHealth(place: DeployedPlace, health: Health, now: Instant, why = ''): readonly StatusRow[] {
  return health.cas.map(({ name, notAfter }) => {
    const row = endRow(name, Date.parse(notAfter), leastDays(place), now, '');
    return { ...row, seen: `${row.seen}, as the endpoint says${why}` };
  });
}

function leastDays({ file }: DeployedPlace): number {
  return file?.deployment.alarms?.caDaysLeft ?? fewestDays;
}

function rowOfCa(ca: Readonly<Record<string, unknown>>, least: number, now: Instant): StatusRow {
  const name = String(ca['name']);
  if (ca['ok'] !== true) {
    const awaited = ca['why'] === 'AwaitsImport' || ca['why'] === 'AwaitsIssuer';
    const result = awaited ? 'none' : 'fail';
    const mend = awaited ? 'docs/ca/sources.md' : `docs/runbook.md#ca-faults`;
    return {
      id: 'ca',
      check: `CA ${name} is in force`,
      result,
      seen: String(ca['message']),
      mend,
      facts: { name, why: ca['why'] },
    };
  }
  const { subject } = new X509Certificate(String(ca['certificatePem']));
  const ends = typeof ca['pathEnds'] === 'number' ? ca['pathEnds'] : 0;
  return endRow(name, ends, least, now, subject.replaceAll('\n', ', '));
}

function endRow(name: string, end: Instant, least: number, now: Instant, subject: string): StatusRow {
  const days = Math.floor((end - now) / day);
  const until = new Date(end).toISOString().slice(0, 10);
  const row = {
    id: 'ca',
    check: `CA ${name} is in force`,
    facts: { name, subject, daysLeft: days, notAfter: new Date(end).toISOString() },
  } as const;
  const seen = `${subject === '' ? '' : `${printableUpTo(100, subject)}, `}${days} days left, until ${until}`;
  if (days >= least) return { ...row, result: 'pass', seen };
  return {
    ...row,
    result: 'fail',
    seen,
    mend: `countersign ca rotate --name ${name} shows the steps to its successor: docs/ca/rotation.md`,
  };
}

const tables = { CertificatesTable: 'the ledger', AttestationsTable: 'the attestation records' } as const;

export async function lookAtTables(
  { region }: DeployedPlace,
  outputs: () => Promise<Readonly<Record<string, string>>>,
  io: Pick<Io, 'lookAtTable'>,
): Promise<readonly StatusRow[]> {
  const rows = Object.entries(tables).map(([output, what]) => {
    const name = { id: 'table', check: `the table of ${what} is there` } as const;
    return rowsOr(name, async () => {
      const table = (await outputs())[output];
      if (table === undefined)
        return {
          ...name,
          result: 'unknown',
          seen: `the stack has no output ${output}: an earlier version deployed it`,
        };
      const seen = await io.lookAtTable({ table, region });
      if (!seen.exists)
        return {
          ...name,
          result: 'fail',
          seen: `there is no table ${table}`,
          mend: 'docs/deploy.md, “A table that was restored”',
        };
      const { status, pointInTimeRecovery: recovery, deletionProtection } = seen;
      const facts = {
        table,
        status,
        deletionProtection,
        ...(typeof recovery === 'boolean' ? { pointInTimeRecovery: recovery } : {}),
      };
      if (recovery instanceof CommandFailure) return { ...unknown(name, recovery), facts };
      const lacks = [
        ...(status === 'ACTIVE' || status === 'UPDATING' ? [] : [`its state is ${status}`]),
        ...(recovery ? [] : ['point-in-time recovery is off']),
        ...(deletionProtection ? [] : ['deletion protection is off']),
      ];
      if (lacks.length > 0)
        return {
          ...name,
          result: 'fail',
          seen: `${table}: ${lacks.join(', ')}`,
          mend: 'npm run cdk -- deploy sets both again',
          facts,
        };
      return { ...name, result: 'pass', seen: `${table}, ${status}, point-in-time recovery on`, facts };
    });
  });
  return (await Promise.all(rows)).flat();
}

const hours = 3_600_000;
/** A fault this recent may still be there. */
const recentMilliseconds = 15 * 60_000;
/** Faults, and services that did not answer; refusals are answers (core/outcome/trouble.ts). */
const pattern = '{ ($.alarm = "faults") || ($.alarm = "interruptions") }';

export async function lookAtLogs(
  place: DeployedPlace,
  io: Pick<Io, 'openTrace' | 'now'>,
): Promise<readonly StatusRow[]> {
  const { cluster, region } = place;
  const now = io.now();
  const all = { id: 'errors', check: 'the functions have logged no fault' } as const;
  return rowsOr(all, async () => {
    const open = await io.openTrace({ kind: 'deployed', cluster, region });
    try {
      return (await Promise.all(functions.map((of) => lookAtLog(open, of, now)))).flat();
    } finally {
      open.close();
    }
  });
}

async function lookAtLog(open: OpenTrace, of: (typeof functions)[number], now: Instant): Promise<readonly StatusRow[]> {
  const row = { id: 'errors', check: `${of} has logged no fault in the last quarter of an hour` } as const;
  return rowsOr(row, async () => {
    const found = await open.searchLog({ of, pattern, from: now - 24 * hours, to: now });
    // A cluster without attestation has no attest function.
    if (found === undefined) return { ...row, result: 'none', seen: 'the cluster has no such function' };
    const last = found.lines.toSorted((a, b) => b.at - a.at)[0];
    const unsearched = found.endedEarly === undefined ? '' : `; the search ended ${found.endedEarly}`;
    if (last === undefined)
      return { ...row, result: unsearched === '' ? 'pass' : 'unknown', seen: `none in 24 hours${unsearched}` };
    const { trouble, error, uid } = parsedObject(last.text) ?? {};
    const { name, message } = objectOf(error);
    const words = [trouble, name, message].filter((word) => typeof word === 'string' && word !== '').join(': ');
    const seen = `the last one ${agoText(now - last.at)}: ${printableUpTo(200, words === '' ? 'no reason' : words)}${unsearched}`;
    const facts = { at: new Date(last.at).toISOString(), trouble, uid };
    if (now - last.at > recentMilliseconds) return { ...row, result: 'pass', seen, facts };
    return {
      ...row,
      result: 'fail',
      seen,
      mend: `docs/runbook.md${typeof trouble === 'string' ? `#${trouble}` : ''}`,
      facts,
    };
  });
}
