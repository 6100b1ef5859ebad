/** Keys that the providers `gce` and `gce-vtpm` have in common: which VMs of Google may join, and how the attest function reads them. */
import { z } from 'zod';
import type { Place } from '../fields/place.ts';
import { matching } from '../fields/values.ts';

export const googleNumber = (what: string) =>
  matching(/^[1-9][0-9]{0,19}$/, `must be the number of ${what}, in quotes`);

export const googleProjects = z
  .record(
    googleNumber('a project'),
    matching(/^([a-z0-9.-]{1,63}:)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the id of a project'),
  )
  .default({})
  .describe(
    'Projects whose VMs may join: the id of each by its number, in quotes. Required. Google is asked about no other project.',
  );

export const googleFederation = z.strictObject({
  provider: matching(
    /^\/\/iam\.googleapis\.com\/projects\/[1-9][0-9]{0,19}\/locations\/global\/workloadIdentityPools\/[a-z0-9-]{4,32}\/providers\/[a-z0-9-]{4,32}$/,
    'must be //iam.googleapis.com/projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>',
  )
    .exactOptional()
    .describe('The AWS provider of a workload identity pool that admits the role of the attest function. Required.'),
  serviceAccount: matching(
    /^[a-z0-9-]{1,63}@[a-z0-9.-]{1,200}\.gserviceaccount\.com$/,
    'must be the mail address of a service account',
  )
    .exactOptional()
    .describe('The service account that then reads the VMs. Default: the identity of the pool reads them itself.'),
});

/** `more`: what else the description says. */
export const googleLabels = (more: string) =>
  z
    .record(matching(/^[a-z][a-z0-9_-]{0,62}$/, 'must be the key of a label'), z.string().max(63))
    .default({})
    .describe(
      `Labels the VM must have, all of them; value \`*\` = any. A principal that may label VMs decides which VMs join. ${more}`,
    );

export const googleServiceAccounts = z
  .array(z.string().max(320))
  .max(64)
  .default([])
  .describe('Service accounts, by mail address, of which the VM must run as one.');

export interface GoogleFederation {
  /** `//iam.googleapis.com/projects/…/providers/…` */
  readonly provider: string;
  /** Mail address. Absent: the federated identity itself reads the VMs. */
  readonly serviceAccount?: string;
}

/** `at`: the key `federation`. `undefined` after an error. */
export function resolveFederation(
  { provider, ...rest }: z.infer<typeof googleFederation>,
  at: Place,
): GoogleFederation | undefined {
  if (provider === undefined) at('provider').error('is required');
  return provider === undefined ? undefined : { ...rest, provider };
}
