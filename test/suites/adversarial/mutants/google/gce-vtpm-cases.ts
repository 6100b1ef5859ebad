/** Blocks of gke-exec-auth-plugin, requests under policies, and questions about machines, put to the gce-vtpm provider. */
import { doesNotMatch } from 'node:assert/strict';
import { readVmEvidence } from '../../../../../core/attestation/gce-vtpm/blocks.ts';
import type { ComputeEndpoint, VmDescription } from '../../../../../core/attestation/google/compute.ts';
import { gceVtpmProvider } from '../../../../../core/attestation/gce-vtpm/provider.ts';
import { decodeRequest } from '../../../../../core/x509/certificate-request.ts';
import { blockCases } from '../../../../corpus/attestation/gce-vtpm/block-cases.ts';
import {
  described,
  judgeVm,
  pinned,
  policy,
  providerCases,
} from '../../../../corpus/attestation/gce-vtpm/provider-cases.ts';
import { vm } from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import type { Case as MutantCase } from '../../../../harness/mutants/case-runner.ts';

const blocks = blockCases.map((one) => ({ ...one, written: one.text() }));
const identity = `gce-vtpm#${vm.projectNumber}/${vm.zone}/${vm.instanceId}`;

const states: readonly (readonly [name: string, of: string, answer: Partial<VmDescription> | 'notFound'])[] = [
  ['running', identity, {}],
  ['without the label', identity, { labels: new Map() }],
  ['stopped', identity, { status: 'TERMINATED' }],
  ['being created', identity, { status: 'PROVISIONING' }],
  ['being started', identity, { status: 'STAGING' }],
  ['not known', identity, 'notFound'],
  ['of another project', identity.replace(vm.projectNumber, '42'), {}],
  ['not a VM', 'aws#x', {}],
  ['more behind the id', `${identity}/x`, {}],
];

/** Whether each wrong request is refused comes first, so that a mutant that lets one in is caught by that. */
export function cases(): readonly MutantCase[] {
  return [
    ...blocks
      .filter(({ expect }) => expect !== 'accepted')
      .map(({ name, written }) => ({ name: `refused: ${name}`, run: () => doesNotMatch(read(written), /^accepted/) })),
    ...providerCases
      .filter(({ expect }) => expect !== 'accepted')
      .map((one) => ({ name: `refused: ${one.name}`, run: async () => doesNotMatch(await judged(one), /^accepted/) })),
    ...blocks.map(({ name, written }) => ({ name, run: () => read(written) })),
    ...providerCases.map((one) => ({ name: one.name, run: () => judged(one) })),
    ...states.map(([name, of, answer]) => ({ name: `state: ${name}`, run: () => stateOf(of, answer) })),
    { name: 'state: on the list', run: () => stateOf(identity, 'notFound', true) },
    {
      name: 'state: without Google’s API',
      run: async () => JSON.stringify(await gceVtpmProvider(policy, undefined).describe(identity, 0)),
    },
  ];
}

function read(text: string): string {
  const decoded = decodeRequest(Buffer.from(text), 'gce-vtpm');
  if (!decoded.ok) return JSON.stringify(decoded.problem);
  const evidence = readVmEvidence(decoded.value);
  if (!evidence.ok) return JSON.stringify(evidence.problem);
  const { vm: stated, clock, certificate } = evidence.value;
  return `accepted ${JSON.stringify({ stated, clock, certified: certificate !== undefined })}`;
}

async function judged(one: (typeof providerCases)[number]): Promise<string> {
  const { outcome, machine, asked } = await judgeVm(gceVtpmProvider, one);
  return `${outcome} ${asked.length} ${JSON.stringify(machine ?? null)}`;
}

async function stateOf(of: string, answer: Partial<VmDescription> | 'notFound', listed = false): Promise<string> {
  const compute: ComputeEndpoint = {
    describeInstance: () => Promise.resolve(answer === 'notFound' ? answer : { ...described, ...answer }),
    signingKey: () => Promise.resolve({ kind: 'noKey' }),
  };
  try {
    const state = await gceVtpmProvider({ ...policy, instances: listed ? [pinned] : [] }, compute).describe(of, 0);
    return JSON.stringify(state);
  } catch {
    return 'crash';
  }
}
