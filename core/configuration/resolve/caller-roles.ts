/**
 * Checks that no role of nodes is among `access.iam.principals`. A pod with the host's network, and every pod where the
 * metadata hop limit is above 1, has the credentials of its node's role: if that role may assume the caller role, each node
 * can call as a relay does.
 */
import type { Place } from '../fields/place.ts';
import type { AwsAttestationInput } from '../providers/aws-keys.ts';
import type { ClusterInput } from '../schema/cluster.ts';
import { profileMatches } from '../../policy/patterns.ts';

/** `at`: the cluster. Its defaults are filled in, because nodes have roles even if no profile is attested. */
export function checkCallerRoles({ access: { iam }, attestation }: ClusterInput, at: Place): void {
  if (iam === undefined) return;
  const { principals, everyNodeMayAskForCertificates: accepted } = iam;
  accepted.forEach((arn, index) => {
    const here = at('access', 'iam', 'everyNodeMayAskForCertificates', index);
    if (!principals.includes(arn)) here.error('is not among principals');
    here.warning(
      'every node with this role, and every pod there that reaches the instance metadata, may ask for certificates in any name',
    );
  });
  principals.forEach((arn, index) => {
    if (accepted.includes(arn)) return;
    const here = at('access', 'iam', 'principals', index);
    const [, , , , account = '', resource = ''] = arn.split(':');
    const key = admittingKey(arn, attestation?.aws);
    if (key?.includes('*') === true)
      here.warning(
        `has a name that attestation.aws.${key} admits machines by; if nodes have this role, each of them may ask for certificates: give the relay a role of its own`,
      );
    else if (key !== undefined)
      here.error(
        `is the role of machines that may join (attestation.aws.${key}): each of them, and each of their pods that reaches the instance metadata, could ask for certificates; give the relay a role of its own, or name this one under everyNodeMayAskForCertificates too`,
      );
    else if (resource === 'root' && attestation?.aws?.accounts[account] !== undefined)
      here.warning(
        'is an account whose instances may join: its own policies say whether their roles may ask for certificates; name the role of the relay',
      );
    else if (nodeRoleName.test(resource.slice(resource.lastIndexOf('/') + 1)))
      here.warning(
        'has the name of a role of nodes; if ordinary nodes have it, each of them may ask for certificates: give the relay a role of its own',
      );
  });
}

/** Names that eksctl, kOps, Karpenter and Cluster API give to the roles of nodes, without those of control planes. */
const nodeRoleName = /(^|[^A-Za-z])(nodes?|workers?|kubelet)([^A-Za-z]|$)|Node(Instance)?Role/i;

/** The key of `attestation.aws`, with its pattern, that admits machines with this role. */
function admittingKey(arn: string, aws: AwsAttestationInput | undefined): string | undefined {
  if (aws === undefined) return undefined;
  const { roles, instanceProfiles } = aws;
  if (roles.includes(arn)) return 'roles';
  // EC2's console, and most tools, give an instance profile the name and path of its role.
  const profile = arn.replace(':role/', ':instance-profile/');
  if (profile === arn) return undefined;
  const matching = instanceProfiles.filter((each) => profileMatches(each, profile));
  // An exact name is preferred: a pattern may also admit names that nodes do not have.
  const pattern = matching.find((each) => !each.includes('*')) ?? matching[0];
  return pattern === undefined ? undefined : `instanceProfiles ${pattern}`;
}
