/** The DNS names of the operator for the HTTP APIs of a cluster. */
import type { Domain } from '../model/deployment.ts';
import type { Place } from '../fields/place.ts';
import type { DeploymentInput } from '../schema/deployment.ts';

type Ways = 'iam' | 'jwt';

/** `at`: the cluster. */
export function resolveDomains(
  { frontDoor, access, aws }: Pick<DeploymentInput, 'frontDoor' | 'access' | 'aws'>,
  at: Place,
): Partial<Record<Ways, Domain>> {
  const domains: Partial<Record<Ways, Domain>> = {};
  for (const way of ['iam', 'jwt'] as const) {
    const domain = access[way]?.domain;
    if (domain === undefined) continue;
    const here = at('access', way, 'domain');
    if (frontDoor === 'functionUrl') here.error('a function URL has no domain of yours; use frontDoor: httpApi');
    const { name = '', certificate = '' } = domain;
    if (name === '') here('name').error('is required');
    if (certificate === '') here('certificate').error('is required');
    const region = certificate.split(':')[3];
    if (certificate !== '' && aws.region !== undefined && region !== aws.region)
      here('certificate').error(`must be in the region of the stacks, ${aws.region}`);
    domains[way] = { name, certificate };
  }
  // Both would need a path in front of the API's own, and the function would see it.
  if (domains.iam !== undefined && domains.iam.name === domains.jwt?.name)
    at('access', 'jwt', 'domain', 'name').error('is the name of access.iam; each API needs a name of its own');
  return domains;
}
