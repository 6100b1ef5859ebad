/**
 * Requests of gke-exec-auth-plugin changed at random: the text, the content of one block, blocks of two requests mixed; and content that
 * the vTPM of this file signed with the change in it, so that what is behind the signature is reached too. The same seed gives the
 * same changes.
 */
import { hash } from 'node:crypto';
import { gceVtpmProvider } from '../../../../core/attestation/gce-vtpm/provider.ts';
import type { Violation } from '../../../../core/outcome/outcome.ts';
import { decodeFor } from '../../../../core/read-and-check-request.ts';
import { nick, runCampaign } from '../../../harness/determinism/campaign.ts';
import type { Attempt, Campaign, Random } from '../../../harness/determinism/campaign.ts';
import { pemBlock } from '../../../harness/x509/requests.ts';
import { pinned, policy } from './provider-cases.ts';
import { realVm, requests, signingKey } from './real-requests.ts';
import { vm, vmRequest } from './vm.ts';

type Blocks = readonly (readonly [label: string, content: Buffer])[];

const blocksOf = (text: string): Blocks =>
  [...text.matchAll(/-----BEGIN ([^-]+)-----\n([^-]+)-----END/g)].map(([, label = '', body = '']) => [
    label,
    Buffer.from(body, 'base64'),
  ]);
const textOf = (blocks: Blocks): string => blocks.map(([label, content]) => pemBlock(label, content)).join('');

const originals = [
  requests['with-aik-cert'].text,
  requests['leading-zero-x'].text,
  vmRequest({ certificate: {} }),
  vmRequest(),
];

/** What a right request states. Two that differ only behind no signature (the attestation certificate) have the same. */
function statementOf(text: string): string {
  const named = new Map(blocksOf(text));
  const parts = ['ATTESTATION DATA', 'ATTESTATION SIGNATURE', 'VM IDENTITY'].map((label) => named.get(label) ?? '');
  return parts.map((part) => hash('sha256', part)).join(' ');
}
const right = new Set(originals.map(statementOf));

/** `isSigned`: the vTPM signed the changed attestation. */
function mutated(random: Random): { readonly text: string; readonly isSigned: boolean } {
  const original = originals[random(originals.length)] ?? '';
  const blocks = blocksOf(original);
  const at = random(blocks.length);
  const other = blocksOf(originals[random(originals.length)] ?? '');
  const change = (content: (usual: Buffer) => Buffer): Blocks =>
    blocks.map(([label, usual], index) => [label, index === at ? content(usual) : usual]);
  switch (random(6)) {
    case 0:
      return { text: nick(Buffer.from(original), random).toString('latin1'), isSigned: false };
    case 1:
      return {
        text: textOf(blocks.map((block, index) => (index === at ? (other[at] ?? block) : block))),
        isSigned: false,
      };
    case 2:
      return {
        text: textOf(blocks.toSpliced(at, random(2), other[random(other.length)] ?? blocks[0]!)),
        isSigned: false,
      };
    case 3:
      return { text: vmRequest({ attestBytes: (usual) => nick(usual, random) }), isSigned: true };
    default:
      return { text: textOf(change((usual) => nick(usual, random))), isSigned: false };
  }
}

const { projectNumber: project, instanceId: id, zone, name } = realVm;
const provider = gceVtpmProvider(
  {
    ...policy,
    projects: { ...policy.projects, [realVm.projectNumber]: realVm.projectId },
    instances: [pinned, { project, id, zone, name, signingKey, addresses: [], dnsNames: [] }],
  },
  undefined,
);

async function judge(text: string): Promise<readonly Violation[]> {
  const decoded = decodeFor({ requestBlocks: 'gce-vtpm' }, Buffer.from(text, 'latin1'));
  if (!decoded.ok) return decoded.problem;
  // A request without blocks is not for the provider.
  if (decoded.value.evidence.length === 0) return [{ code: 'AttestationMissing', message: 'no blocks' }];
  const nodeName = decoded.value.subject.commonName === 'system:node:vm' ? 'vm' : vm.name;
  const about = { version: 'gce-vtpm/v1', data: new Uint8Array(), clusterName: '', binding: () => '', now: 0 };
  const examined = await provider.examine({ ...about, request: decoded.value, nodeName });
  if (!examined.ok) return examined.problem;
  const machine = await examined.value.verify();
  return machine.ok ? [] : machine.problem;
}

async function attempt(random: Random): Promise<Attempt> {
  const { text, isSigned } = mutated(random);
  const violations = await judge(text);
  // Behind the signature of the vTPM are fields that prove nothing: its clock, its firmware, the signer's own name.
  const isRight = violations.length > 0 || isSigned || right.has(statementOf(text));
  return { violations, ...(isRight ? {} : { fault: 'accepted' }) };
}

export function runVmCampaign(seed: number, count: number): Promise<Campaign> {
  return runCampaign(seed, count, attempt);
}
