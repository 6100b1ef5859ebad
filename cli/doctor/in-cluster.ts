/** The cluster: is it reached and of a known version, may the relay do its work, who approves, what bypasses attestation. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { parsedObject } from '../../core/encoding/json-object.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { failIfRefused } from '../cluster/object-answers.ts';
import { notSeen, openBypasses } from '../cluster/harden-view.ts';
import { canTakeOver, relayText } from '../cluster/relay-view.ts';
import type { Relay } from '../cluster/relay-view.ts';
import { viewBypasses } from '../cluster/view-bypasses.ts';
import type { CheckRow } from '../output/check-rows.ts';
import type { Io } from '../runtime/io.ts';
import { clockRow } from './clock.ts';
import { failureRow } from './failure-row.ts';

/** The minor versions that the suites run (test/tools/pins.ts). */
const testedMinors = ['36'];
const nodeClient = 'kubernetes.io/kube-apiserver-client-kubelet';

export async function clusterRows(
  cluster: ClusterConnection,
  rules: ClusterConfiguration | undefined,
  io: Io,
): Promise<readonly CheckRow[]> {
  const version = await versionRow(cluster);
  const login = await loginRows(cluster, io);
  const approving = [...(rules?.approval ?? [])].flatMap(([name, approval]) => (approval === 'approve' ? [name] : []));
  const seen = await viewBypasses(cluster, undefined, approving).catch((error: unknown) =>
    // The API server's message names the right.
    failureRow('relay', 'Deployments, pods and ClusterRoleBindings can be read', error),
  );
  if ('result' in seen) return [version, ...login, seen];
  const view = { server: '', context: '', user: '', ...seen };
  return [
    version,
    ...login,
    ...relayRows(view.relays, approving),
    ...approverRows(rules, view.relays, view.controllerManager.csrapproving.state),
    ...bypassRows(rules, openBypasses(view), notSeen(view)),
  ];
}

async function versionRow(cluster: ClusterConnection): Promise<CheckRow> {
  const row = { id: 'cluster', check: 'the API server answers, in a version that is tested' } as const;
  const text = await failIfRefused(cluster.text('/version', {}), 'the version', {
    Unauthorized: 'the login of the kubeconfig is not accepted',
  });
  const { gitVersion, major, minor } = parsedObject(text ?? '') ?? {};
  const seen = `${cluster.server}: ${typeof gitVersion === 'string' ? printable(gitVersion) : 'no version'}`;
  const plain = String(minor).replace(/\D.*$/, '');
  if (String(major) === '1' && testedMinors.includes(plain)) return { ...row, result: 'pass', seen };
  return {
    ...row,
    result: 'unknown',
    seen,
    mend: `it is tested with Kubernetes 1.${testedMinors.join(', 1.')}: README.md, “Known limitations”`,
  };
}

/** The review tells the user, and the time of the API server. */
async function loginRows(cluster: ClusterConnection, io: Io): Promise<readonly CheckRow[]> {
  const before = io.now();
  const asked = cluster.authentication.createSelfSubjectReview({ body: {} });
  const review = await failIfRefused(asked, 'the user', {
    Unauthorized: 'log in, or name another --kubeconfig or --context',
  });
  const user = review.status?.userInfo?.username ?? '';
  const row: CheckRow = {
    id: 'login',
    check: 'the login of the kubeconfig is accepted',
    result: 'pass',
    seen: printable(user),
  };
  const created = review.metadata?.creationTimestamp;
  if (created === undefined) return [row];
  return [row, clockRow('the API server', new Date(created).getTime(), before, io.now())];
}

function relayRows(relays: readonly Relay[], approving: readonly string[]): readonly CheckRow[] {
  if (relays.length === 0)
    return [
      {
        id: 'relay',
        check: 'the relay is installed',
        result: 'none',
        seen: 'no Deployment has the labels of the chart',
        mend: 'countersign relay values, then docs/deploy.md, “Install the relay”',
      },
    ];
  return relays.map((relay) => {
    const row = {
      id: 'relay',
      check: `relay ${printable(relay.namespace)}/${printable(relay.name)} may work`,
    } as const;
    const approves = approving.length > 0;
    if (!approves && relay.ready > 0 && relay.available)
      return { ...row, result: 'pass', seen: `${relay.ready} ready` };
    const seen = approves ? relayText(relay) : 'it is not Available';
    if (canTakeOver(relay)) return { ...row, result: 'pass', seen };
    const unknown = relay.ready > 0 && relay.available && relay.approves === undefined;
    return {
      ...row,
      result: unknown ? 'unknown' : 'fail',
      seen,
      mend: unknown
        ? 'it needs create on subjectaccessreviews (authorization.k8s.io)'
        : 'countersign status says what it lacks; countersign relay values writes values with these rights',
    };
  });
}

/** One row for each signer of the file: without an approver its requests wait for ever. */
function approverRows(
  rules: ClusterConfiguration | undefined,
  relays: readonly Relay[],
  inTree: 'on' | 'off' | 'not seen',
): readonly CheckRow[] {
  return [...(rules?.approval ?? [])].map(([name, approval]): CheckRow => {
    const row = { id: 'approver', check: `requests of ${name} have an approver` } as const;
    if (approval === 'approve') {
      if (relays.some(canTakeOver)) return { ...row, result: 'pass', seen: 'the relay approves' };
      const known = relays.every(({ approves }) => approves !== undefined);
      return {
        ...row,
        result: known ? 'fail' : 'unknown',
        seen: 'the file says that the relay approves, and no relay is known that can',
        mend: 'docs/deploy.md, “Install the relay”',
      };
    }
    if (name !== nodeClient)
      return {
        ...row,
        result: 'none',
        seen: 'approval: manual: a person or a controller of yours',
        mend: `countersign csr approve NAME; kubectl get csr --field-selector spec.signerName=${name}`,
      };
    if (inTree === 'on')
      return {
        ...row,
        result: 'pass',
        seen: 'kube-controller-manager approves those of nodes and of bootstrap tokens',
      };
    if (inTree === 'off')
      return {
        ...row,
        result: 'fail',
        seen: 'csrapproving of kube-controller-manager is off, and approval is manual',
        mend: 'approval: approve in countersign.yaml, or a controller of yours',
      };
    return {
      ...row,
      result: 'unknown',
      seen: 'csrapproving of kube-controller-manager was not seen',
      mend: 'countersign cluster harden shows what it looks at',
    };
  });
}

function bypassRows(
  rules: ClusterConfiguration | undefined,
  open: readonly string[],
  unseen: readonly string[],
): readonly CheckRow[] {
  const row = { id: 'bypass', check: 'nothing bypasses attestation' } as const;
  const enforced = [...(rules?.profiles.values() ?? [])].some(({ attestation }) => attestation?.mode === 'enforce');
  if (!enforced) return [{ ...row, result: 'none', seen: 'no signer of the file enforces it' }];
  if (open.length > 0)
    return open.map((seen) => ({ ...row, result: 'fail', seen, mend: 'countersign cluster harden: docs/join.md' }));
  if (unseen.length === 0) return [{ ...row, result: 'pass', seen: 'no binding, no other signer' }];
  return unseen.map((seen) => ({
    ...row,
    result: 'unknown',
    seen,
    mend: 'countersign cluster harden --probe --check',
  }));
}
