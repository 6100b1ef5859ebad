/** The relay in its cluster: its Deployment, the Lease of the replica that works, and what its Events say about waiting requests. */
import type { V1Deployment } from '@kubernetes/client-node';
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { printable, printableUpTo } from '../../core/outcome/printable-text.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { allPages, failIfRefused, unlessRefused } from '../cluster/object-answers.ts';
import { relayLabels } from '../cluster/relay-view.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { agoText } from './ago-text.ts';
import { rowsOr } from './row.ts';
import type { StatusRow } from './row.ts';

/** A leader renews every two seconds, and another replica takes over after fifteen; clocks may differ. */
const staleMilliseconds = 60_000;

export async function lookAtRelays(
  cluster: ClusterConnection,
  wanted: string,
  now: Instant,
): Promise<readonly StatusRow[]> {
  return rowsOr({ id: 'relay', check: `a relay of cluster ${wanted} works` }, async () => {
    const found = await allPages(
      (page) => cluster.apps.listDeploymentForAllNamespaces({ labelSelector: relayLabels, ...page }),
      'Deployments',
      { Forbidden: 'it needs list on deployments (apps) in all namespaces' },
    );
    if (found.length === 0)
      return {
        id: 'relay',
        check: `a relay of cluster ${wanted} works`,
        result: 'fail',
        seen: `no Deployment in ${cluster.server} has its labels`,
        mend: `countersign relay values, then docs/deploy.md, “Install the relay”; without a relay: --skip-kubernetes`,
      };
    return Promise.all(found.map((deployment) => lookAtRelay(cluster, deployment, wanted, now)));
  });
}

async function lookAtRelay(
  cluster: ClusterConnection,
  { metadata, spec, status }: V1Deployment,
  wanted: string,
  now: Instant,
): Promise<StatusRow> {
  const { name = '', namespace = '', labels = {}, generation } = metadata ?? {};
  const [replicas, ready] = [spec?.replicas ?? 1, status?.readyReplicas ?? 0];
  const version = labels['app.kubernetes.io/version'] ?? '';
  const place = `${printable(namespace)}/${printable(name)}`;
  const row = { id: 'relay', check: `relay ${place} works` } as const;
  const served = clusterOf(spec?.template.spec?.containers ?? []);
  const facts = { namespace, name, cluster: served, replicas, ready, version };
  const seen = [`${ready} of ${replicas} ready`, ...(version === '' ? [] : [`version ${printable(version)}`])];
  if (served !== undefined && served !== wanted)
    return {
      ...row,
      result: 'none',
      seen: `it is of cluster ${printable(served)}, not ${wanted}`,
      mend: 'if only one was expected here: --context chooses another cluster',
      facts,
    };
  if (ready === 0) {
    const mend = `kubectl -n ${namespace} describe deployment ${name}; kubectl -n ${namespace} logs deployment/${name}`;
    return { ...row, result: 'fail', seen: seen.join(', '), mend, facts };
  }
  if (status?.observedGeneration !== generation) seen.push('its last change is not rolled out yet');
  const lease = await leaseOf(cluster, namespace, name);
  if (lease instanceof CommandFailure)
    return { ...row, result: 'unknown', seen: [...seen, lease.message].join(', '), mend: lease.hint ?? '', facts };
  const since = lease?.renewTime === undefined ? undefined : now - lease.renewTime;
  const full = {
    ...facts,
    holder: lease?.holder,
    renewed: lease?.renewTime === undefined ? undefined : new Date(lease.renewTime).toISOString(),
  };
  if (lease === undefined || since === undefined || lease.holder === '')
    return {
      ...row,
      result: 'fail',
      seen: [...seen, 'no replica holds its Lease'].join(', '),
      mend: `kubectl -n ${namespace} logs deployment/${name}`,
      facts: full,
    };
  seen.push(`${printableUpTo(80, lease.holder)} leads, renewed ${agoText(since)}`);
  if (since <= staleMilliseconds) return { ...row, result: 'pass', seen: seen.join(', '), facts: full };
  const mend = `no replica works, unless the clocks differ: kubectl -n ${namespace} logs deployment/${name}`;
  return { ...row, result: 'fail', seen: seen.join(', '), mend, facts: full };
}

/** From the flags and variables that the chart writes; undefined for another installation. */
function clusterOf(
  containers: readonly { args?: string[]; env?: { name: string; value?: string }[] }[],
): string | undefined {
  for (const { args = [], env = [] } of containers) {
    const flag = args.findLast((word) => word.startsWith('--cluster='))?.slice('--cluster='.length);
    const variable = (name: string): string | undefined => env.find((each) => each.name === name)?.value || undefined;
    const url = args.findLast((word) => word.startsWith('--url=')) ?? variable('COUNTERSIGN_URL') ?? '';
    const found = flag ?? variable('COUNTERSIGN_CLUSTER') ?? /\/v1\/clusters\/([^/]+)\/?$/.exec(url)?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}

interface SeenLease {
  readonly holder: string;
  readonly renewTime?: Instant;
}

/** The chart gives it the name of the Deployment. Undefined: it does not exist. */
async function leaseOf(
  { custom }: ClusterConnection,
  namespace: string,
  name: string,
): Promise<SeenLease | CommandFailure | undefined> {
  const place = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespace, name };
  try {
    const read: Promise<unknown> = custom.getNamespacedCustomObject(place);
    const found = await failIfRefused(unlessRefused(read, 'NotFound'), `Lease ${name}`, {
      Forbidden: `it needs get on leases (coordination.k8s.io) in namespace ${namespace}`,
    });
    if (found === undefined) return undefined;
    const { holderIdentity, renewTime } = objectOf(objectOf(found)['spec']);
    const renewed = typeof renewTime === 'string' ? Date.parse(renewTime) : Number.NaN;
    return {
      holder: typeof holderIdentity === 'string' ? holderIdentity : '',
      ...(Number.isNaN(renewed) ? {} : { renewTime: renewed }),
    };
  } catch (error) {
    if (error instanceof CommandFailure && error.code !== exitCodes.temporary) return error;
    throw error;
  }
}

const hour = 3_600_000;

/** Requests that wait: what the relay's Events of the last hour say. A refusal is an answer, and no trouble. */
export async function lookAtEvents({ core }: ClusterConnection, now: Instant): Promise<readonly StatusRow[]> {
  const row = { id: 'errors', check: 'no request has waited for long in the last hour' } as const;
  return rowsOr(row, async () => {
    // The relay writes Events about objects without a namespace into `default`.
    const query = { namespace: 'default', fieldSelector: 'reason=SigningDelayed', limit: 250 };
    const { items } = await failIfRefused(core.listNamespacedEvent(query), 'Events', {
      Forbidden: 'it needs list on events in the namespace default',
    });
    const recent = items
      .map(({ eventTime, message = '', involvedObject, reportingComponent }) => ({
        at: eventTime === undefined ? 0 : new Date(eventTime as unknown as string).getTime(),
        message,
        name: involvedObject?.name ?? '',
        ours: reportingComponent === 'countersign.dev/watch-relay',
      }))
      .filter(({ at, ours }) => ours && now - at < hour)
      .toSorted((a, b) => b.at - a.at);
    const [last] = recent;
    if (last === undefined) return { ...row, result: 'pass', seen: 'no Event SigningDelayed' };
    return {
      ...row,
      result: 'fail',
      seen: `${recent.length} waited; ${agoText(now - last.at)}, ${printable(last.name)}: ${printableUpTo(200, last.message)}`,
      mend: `countersign trace ${printable(last.name)}`,
      facts: {
        requests: recent.length,
        last: { name: last.name, at: new Date(last.at).toISOString(), message: last.message },
      },
    };
  });
}
