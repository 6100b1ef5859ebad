/**
 * `access.iam.principals` against what the file says of nodes. A pod with the host's network, and every pod where the
 * metadata hop limit is above 1, has the credentials of its node's role: where that role may assume the caller role, each
 * node is a relay.
 */
import type { Path, Report } from '../model/report.ts';
import type { ClusterInput } from '../schema/cluster.ts';
import { profileMatches } from '../../policy/patterns.ts';

const at: Path = ['access', 'iam', 'principals'];
const optIn: Path = ['access', 'iam', 'everyNodeMayAskForCertificates'];

/** Of the cluster as written, defaults included: a file without profiles that are attested has roles of nodes too. */
export function checkCallerRoles({ access, attestation }: ClusterInput, report: Report): void {
  const { principals = [], everyNodeMayAskForCertificates: accepted = [] } = access?.iam ?? {};
  accepted.forEach((arn, index) => {
    if (!principals.includes(arn)) report('error', [...optIn, index], 'is not among principals');
    report(
      'warning',
      [...optIn, index],
      'every node with this role, and every pod there that reaches the instance metadata, may ask for certificates in any name',
    );
  });
  principals.forEach((arn, index) => {
    if (accepted.includes(arn)) return;
    const [, , , , account = '', resource = ''] = arn.split(':');
    const found = nodesWith(arn, attestation?.aws ?? {});
    if (found?.includes('*') === true)
      report(
        'warning',
        [...at, index],
        `has a name that attestation.aws.${found} admits machines by; if nodes have this role, each of them may ask for certificates: give the relay a role of its own`,
      );
    else if (found !== undefined)
      report(
        'error',
        [...at, index],
        `is the role of machines that may join (attestation.aws.${found}): each of them, and each of their pods that reaches the instance metadata, could ask for certificates; give the relay a role of its own, or name this one under everyNodeMayAskForCertificates too`,
      );
    else if (resource === 'root' && attestation?.aws?.accounts?.[account] !== undefined)
      report(
        'warning',
        [...at, index],
        'is an account whose instances may join: its own policies say whether their roles may ask for certificates; name the role of the relay',
      );
    else if (nodeRoleName.test(resource.slice(resource.lastIndexOf('/') + 1)))
      report(
        'warning',
        [...at, index],
        'has the name of a role of nodes; if ordinary nodes have it, each of them may ask for certificates: give the relay a role of its own',
      );
  });
}

/** As eksctl, kOps, Karpenter and Cluster API name them; not `control-plane`. */
const nodeRoleName = /(^|[^A-Za-z])(nodes?|workers?|kubelet)([^A-Za-z]|$)|Node(Instance)?Role/i;

/** Which key of the file says that machines with this role may join. */
function nodesWith(
  arn: string,
  { roles = [], instanceProfiles = [] }: NonNullable<NonNullable<ClusterInput['attestation']>['aws']>,
): string | undefined {
  if (roles.includes(arn)) return 'roles';
  // EC2's console, and most tools, give an instance profile the name and path of its role.
  const profile = arn.replace(':role/', ':instance-profile/');
  if (profile === arn) return undefined;
  const matching = instanceProfiles.filter((each) => profileMatches(each, profile));
  // A pattern may well admit other names than nodes have.
  const pattern = matching.find((each) => !each.includes('*')) ?? matching[0];
  return pattern === undefined ? undefined : `instanceProfiles ${pattern}`;
}
