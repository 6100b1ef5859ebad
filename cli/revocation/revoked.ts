/** `countersign cert revoked`: the list, what kube-apiserver is told, and whether it obeys. */
import { readBoundedDocument } from '../../core/encoding/bounded-document.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { Revocation } from '../../core/ports/revocations.ts';
import { authorizationConfiguration } from '../../core/revocation/authorization-configuration.ts';
import { announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { formatOutput, table } from '../output/output.ts';
import { fullText, instantText } from '../output/tofu-text.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io, OpenRevocations } from '../runtime/io.ts';
import { checkObeys } from './check.ts';
import { withRevocations } from './place.ts';
import type { PlaceFlags } from './place.ts';
import { shownRevocation } from './record.ts';

export interface RevokedFlags extends PlaceFlags, ClusterAccessFlags {
  readonly authorization?: string;
  readonly base?: string;
  readonly check?: true;
  readonly output: string;
}

export async function revoked(flags: RevokedFlags, io: Io): Promise<ExitCode> {
  const all = await withRevocations(flags, io, (open) => listRevoked(open, io.now()));
  if (flags.check === true)
    return withCluster(flags, io, async (cluster) => {
      await announce(cluster, io);
      const results = await checkObeys(cluster, all);
      const accepted = results.filter(({ refused }) => !refused);
      const rows = results.map(({ serial, refused, answer }) => [
        serial,
        refused ? 'refused' : 'ACCEPTED',
        fullText(answer),
      ]);
      io.out(formatOutput(flags.output, results, () => table([['SERIAL', 'API SERVER', 'ANSWER'], ...rows])));
      return accepted.length === 0 ? exitCodes.ok : exitCodes.refused;
    });
  if (flags.authorization === undefined) {
    io.out(formatOutput(flags.output, all.map(shownRevocation), () => revocationsTable(all, flags.output === 'wide')));
    return exitCodes.ok;
  }
  const base = flags.base === undefined ? undefined : await readBase(flags.base, io);
  const fingerprints = all.map(({ fingerprint }) => fingerprint);
  const configuration = authorizationConfiguration({ fingerprints, kubeConfigFile: flags.authorization }, base);
  if (!configuration.ok) throw new CommandFailure(exitCodes.configuration, `${flags.base}: ${configuration.problem}`);
  io.out(formatOutput('yaml', configuration.value, () => ''));
  return exitCodes.ok;
}

/** Those of all CAs. */
async function listRevoked(open: OpenRevocations, now: Instant): Promise<readonly Revocation[]> {
  const found: Revocation[] = [];
  for (const keyId of await open.caKeys()) for await (const each of open.revocations.list(keyId, now)) found.push(each);
  return found;
}

async function readBase(path: string, io: Io): Promise<unknown> {
  let text: string;
  try {
    text = Buffer.from(await io.read(path)).toString('utf8');
  } catch (error) {
    throw new CommandFailure(exitCodes.configuration, `${path}: ${String((error as { code?: unknown }).code)}`);
  }
  const document = readBoundedDocument(text);
  if (!document.ok) throw new CommandFailure(exitCodes.configuration, `${path}: ${document.problem}`);
  return document.value;
}

function revocationsTable(all: readonly Revocation[], wide: boolean): string {
  const head = ['SERIAL', 'NODE', 'MACHINE', 'REASON', 'REVOKED', 'EXPIRES', 'BY', 'NOTE'];
  return table([
    wide ? [...head, 'MATCHED BY', 'AUDIT ITEM', 'UID', 'SHA-256'] : head,
    ...all.map((each) => {
      const { serial, nodeName, identity, reason, at, notAfter, by, note, matchedBy, auditId, uid, fingerprint } = each;
      const times = [instantText(at), instantText(notAfter)];
      const row = [serial, fullText(nodeName ?? '-'), fullText(identity ?? '-'), reason, ...times];
      const who = [fullText(by), fullText(note)];
      return wide ? [...row, ...who, fullText(matchedBy), auditId, fullText(uid), fingerprint] : [...row, ...who];
    }),
  ]);
}
