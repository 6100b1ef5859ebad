/** The keys of `attestation.gce` in countersign.yaml, and what they mean (docs/attestation/gce.md). */
import { z } from 'zod';
import type { NodeNameTemplate } from '../../policy/name-templates.ts';
import type { Place } from '../fields/place.ts';
import { nodeNameTemplate } from './anchors.ts';
import {
  googleFederation,
  googleLabels,
  googleProjects,
  googleServiceAccounts,
  resolveFederation,
} from './google-keys.ts';
import type { GoogleFederation } from './google-keys.ts';

export const gceKeys = z.strictObject({
  projects: googleProjects,
  federation: googleFederation
    .exactOptional()
    .describe('How the attest function logs in to Google, which then describes each VM. Required.'),
  labels: googleLabels(
    'A project alone admits every VM in it, so one of `labels`, `serviceAccounts` and `machines: listed` is required.',
  ),
  serviceAccounts: googleServiceAccounts,
  machines: z
    .enum(['any', 'listed'])
    .default('any')
    .describe(
      '`listed`: only VMs that `countersign machines allow` names, as `gce#<project number>/<zone>/<instance id>`.',
    ),
  nodeName: z
    .array(z.string().min(1).max(300))
    .default(['{name}'])
    .describe(
      'What a VM may be called, any of them: a template of `{name}`, `{zone}` and `{project}` (its id), such as `{name}.{zone}.c.{project}.internal`; or `pattern:<name with *>`: any such name, first come, first served.',
    ),
});

type Input = z.infer<typeof gceKeys>;

/** The keys of `attestation.gce`, described in the schema. */
export interface GceAttestation extends Readonly<Omit<Input, 'federation' | 'nodeName'>> {
  readonly federation: GoogleFederation;
  readonly nodeName: readonly NodeNameTemplate[];
}

/** `at`: the key `gce` under `attestation`. */
export function resolveGce({ federation, nodeName, ...rest }: Input, at: Place): GceAttestation {
  const { projects, labels, serviceAccounts, machines } = rest;
  if (Object.keys(projects).length === 0) at('projects').error('is required and must name a project');
  if (Object.keys(labels).length + serviceAccounts.length === 0 && machines === 'any')
    at.error('a project alone admits every VM in it: name labels, serviceAccounts or machines: listed too');
  if (federation === undefined) at('federation').error('is required: Google says which VMs run');
  if (nodeName.length === 0) at('nodeName').error('must name a template or a pattern');
  const login = federation === undefined ? undefined : resolveFederation(federation, at('federation'));
  return {
    ...rest,
    // Not used after an error.
    federation: login ?? { provider: '' },
    nodeName: nodeName.map((name, index) => nodeNameTemplate(name, ['name', 'zone', 'project'], at('nodeName', index))),
  };
}
