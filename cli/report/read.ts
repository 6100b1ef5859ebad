/** Reads the parts of the report. Each is read on its own: one that cannot be read does not take the others away. */
import { basename, relative, resolve, sep } from 'node:path';
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { revocationFinder } from '../../core/inventory/revocation-finder.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import type { Deployment } from '../../core/rotation/deployment.ts';
import { version } from '../../core/version.ts';
import { announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { allPages } from '../cluster/object-answers.ts';
import { registerPlace, withRegister } from '../register/place.ts';
import type { RegisterFlags } from '../register/place.ts';
import { listRequests } from '../requests/read-requests.ts';
import { readConsumers } from '../rotation/cluster-consumers.ts';
import { findIn, readDeployment } from '../rotation/read-deployment.ts';
import { daysOf } from '../rotation/rotate.ts';
import { CommandFailure } from '../runtime/exit.ts';
import type { Io, RegisterPlace } from '../runtime/io.ts';
import { latestOfHolders, mostHolders } from './model/certificates.ts';
import type { HeldCertificate } from './model/certificates.ts';
import { valueOf } from './model/facts.ts';
import type { Facts, Part, Records } from './model/facts.ts';

export interface ReadFlags extends RegisterFlags, ClusterAccessFlags {
  readonly config?: string;
}

const day = 86_400_000;
/** Certificates that ended longer ago are not looked for. */
const pastDays = 7;

/** Throws CommandFailure if no part can be read: a wrong flag must not make an empty report. */
export async function readFacts(flags: ReadFlags, io: Io): Promise<Facts> {
  const at = io.now();
  const place = registerPlace(flags, io);
  const failures: unknown[] = [];
  const attempt = async <T>(work: () => Promise<T>): Promise<Part<T>> => {
    try {
      return { state: 'read', value: await work() };
    } catch (error) {
      failures.push(error);
      return { state: 'failed', why: whyOf(error) };
    }
  };
  const records = await attempt(() => readRecords(flags, io));
  const cas = await attempt(() => readCas(flags, place, io));
  const held = await attempt(() => readCertificates(place, valueOf(cas), io));
  const certificates = held.state === 'read' ? { ...held, ...held.value } : held;
  if ([records, cas, certificates].every(({ state }) => state === 'failed')) throw failures[0];
  const cluster = await readCluster(flags, io, attempt);
  const name = place.kind === 'embedded' ? basename(resolve(place.folder)) : place.cluster;
  return { at, version, cluster: name, records, cas, certificates, ...cluster };
}

function whyOf(error: unknown): string {
  const hint = error instanceof CommandFailure && error.hint !== undefined ? `; ${error.hint}` : '';
  return `${errorMessage(error)}${hint}`;
}

export function readRecords(flags: RegisterFlags, io: Io): Promise<Records> {
  return withRegister(flags, io, async ({ register }) => ({
    verdicts: await Array.fromAsync(register.listVerdicts(io.now())),
    identities: await Array.fromAsync(register.listIdentities()),
    machines: await register.listMachines(),
    locks: await register.listLocks(),
  }));
}

async function readCas(flags: ReadFlags, place: RegisterPlace, io: Io): Promise<Deployment> {
  // The answer has all CAs of the configuration; the name adds one that is configured no more.
  const name = 'ca';
  if (place.kind === 'deployed') {
    const { cluster, region } = place;
    return readDeployment({ name, cluster, ...(region === undefined ? {} : { region }) }, io);
  }
  const { folder } = place;
  if (flags.config !== undefined) return readDeployment({ ...flags, name, data: folder }, io);
  const cas = [];
  for (const ca of await embeddedCaNames(folder, io)) cas.push({ name: ca, ...(await findIn(folder, ca)) });
  return { cluster: basename(resolve(folder)), cas, profiles: [] };
}

/** The CAs of the dev server are folders beside its files. */
async function embeddedCaNames(folder: string, io: Io): Promise<readonly string[]> {
  const paths = (await io.files(folder)).map((path) => relative(folder, path).split(sep));
  return paths.flatMap(([name = '', file, ...deeper]) =>
    file === 'authority.json' && deeper.length === 0 ? [name] : [],
  );
}

async function readCertificates(
  place: RegisterPlace,
  deployment: Deployment | undefined,
  io: Io,
): Promise<{ readonly value: readonly HeldCertificate[]; readonly note?: string }> {
  const days = deployment === undefined ? daysOf({ cluster: '', cas: [], profiles: [] }) : daysOf(deployment);
  const [from, to] = [io.now() - pastDays * day, io.now() + days * day];
  const open = await io.openTrace(place);
  try {
    const revocationOf = revocationFinder((caKeyId, now) => open.listRevocations(caKeyId, now), from);
    const { held, more } = await latestOfHolders(open.listByExpiry({ from, to }), revocationOf);
    const range = `those that end from ${pastDays} days ago to ${days} days from now`;
    return { value: held, note: more ? `${range}; holders after the first ${mostHolders} are left out` : range };
  } finally {
    open.close();
  }
}

type Attempt = <T>(work: () => Promise<T>) => Promise<Part<T>>;
type ClusterParts = Pick<Facts, 'requests' | 'nodes' | 'trust'>;

async function readCluster(flags: ReadFlags, io: Io, attempt: Attempt): Promise<ClusterParts> {
  if (flags.kubeconfig === undefined) {
    const unread = { state: 'notAsked', why: '--kubeconfig names the cluster' } as const;
    return { requests: unread, nodes: unread, trust: unread };
  }
  const read = await attempt(() =>
    withCluster(flags, io, async (cluster): Promise<ClusterParts> => {
      await announce(cluster, io);
      return {
        requests: await attempt(() => listRequests(cluster)),
        nodes: await attempt(() => nodeNames(cluster)),
        trust: await attempt(() => readConsumers(cluster)),
      };
    }),
  );
  return read.state === 'read' ? read.value : { requests: read, nodes: read, trust: read };
}

export async function nodeNames({ core }: Pick<ClusterConnection, 'core'>): Promise<readonly string[]> {
  const hints = { Forbidden: 'it needs the verb list on nodes' };
  const nodes = await allPages((page) => core.listNode({ ...page }), 'nodes', hints);
  return nodes.map(({ metadata }) => metadata?.name ?? '');
}
