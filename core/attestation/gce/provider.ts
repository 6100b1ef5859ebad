/**
 * The provider for VMs of Google Compute Engine (docs/attestation/gce.md). Google's metadata server signs a token that names the VM and,
 * as its audience, the binding digest. The Compute API then says whether the VM runs, and which addresses belong to it.
 */
import type { GceAttestation } from '../../configuration/providers/gce.ts';
import { fetchedKeys } from '../../jwt/key-source.ts';
import type { KeySource } from '../../jwt/key-source.ts';
import { violated } from '../../outcome/outcome.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { nodeNamesOf } from '../../policy/name-templates.ts';
import type { Instant } from '../../ports/instant.ts';
import type { AttestationProvider, Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import type { ComputeEndpoint, VmDescription } from '../google/compute.ts';
import { identityOf, placeOf } from '../google/place.ts';
import type { VmPlace } from '../google/place.ts';
import { belongings, checkRuns, checkVm, stateOf } from '../google/vm.ts';
import { audienceFor, gceFacts, readGceEvidence } from './evidence.ts';
import { readToken, tokenLife, verifySignature } from './token.ts';
import type { VmToken } from './token.ts';

export interface GcePorts {
  readonly compute: ComputeEndpoint;
  /** Google's key set (JWKS), not yet checked, in bounded time. Throws if it cannot be fetched. */
  readonly keySet: () => Promise<unknown>;
}

interface Google {
  readonly policy: GceAttestation;
  readonly compute: ComputeEndpoint;
  readonly keys: KeySource;
}

export function gceProvider(policy: GceAttestation, { compute, keySet }: GcePorts): AttestationProvider {
  const google: Google = { policy, compute, keys: fetchedKeys(keySet) };
  return {
    ...gceFacts,
    examine: (evidence) => examine(google, evidence),
    describe: (identity) => describe(google, identity),
  };
}

function examine(google: Google, { data, binding, now }: Evidence): Result<Examined, Violations> {
  const sent = readGceEvidence(data);
  if (!sent.ok) return invalid(sent.problem);
  const { token, nonce } = sent.value;
  const read = readToken(token, audienceFor(binding(nonce)), now);
  if (!read.ok) return invalid(read.problem);
  const { vm, issuedAt, id } = read.value;
  const { projects, machines } = google.policy;
  // Before any call to Google: every project of the world has genuine tokens.
  const projectId = projects[vm.projectNumber];
  if (projectId === undefined) return notAllowed(`VMs of project number ${vm.projectNumber} may not join`);
  if (projectId !== vm.projectId)
    return notAllowed(
      `the token names project ${quoted(vm.projectId)}, and not the one with number ${vm.projectNumber}`,
    );
  const identity = identityOf('gce', vm);
  return success({
    identity,
    once: [{ kind: 'gce', id, expiresAt: issuedAt + tokenLife }],
    machines: machines === 'listed' ? [identity] : [],
    verify: () => verifyVm(google, token, read.value, now),
  });
}

async function verifyVm(
  { policy, compute, keys }: Google,
  token: string,
  { vm, header }: VmToken,
  now: Instant,
): Promise<Result<Machine, Violations>> {
  const signed = await verifySignature(token, header, keys, now);
  if (!signed.ok) return invalid(signed.problem);
  const described = await compute.describeInstance(vm);
  if (described === 'notFound') return notAllowed('Google knows no such VM');
  const stopped = checkRuns(described);
  if (stopped !== undefined) return failure([stopped]);
  const [first, ...more] = checkVm(policy, vm, described);
  if (first !== undefined) return failure([first, ...more]);
  if (described.name !== vm.name) return notAllowed('the token has another name than the VM');
  return success(machineOf(policy, vm, described));
}

function machineOf(policy: GceAttestation, place: VmPlace, vm: VmDescription): Machine {
  const projectId = policy.projects[place.projectNumber] ?? '';
  const parts = new Map([
    ['name', vm.name],
    ['zone', place.zone],
    ['project', projectId],
  ]);
  return {
    identity: identityOf('gce', place),
    nodeNames: nodeNamesOf(policy.nodeName, parts),
    ...belongings(projectId, place, vm),
  };
}

async function describe({ policy, compute }: Google, identity: string): Promise<MachineState> {
  const place = placeOf('gce', identity);
  // A project that is not configured any more is not asked. Its VMs may still run, so they keep their names.
  if (place === undefined || policy.projects[place.projectNumber] === undefined) return { kind: 'stopped' };
  return stateOf(await compute.describeInstance(place), (vm) => ({
    machine: machineOf(policy, place, vm),
    violations: checkVm(policy, place, vm),
  }));
}

function invalid(message: string): Result<never, Violations> {
  return violated('AttestationInvalid', message);
}

function notAllowed(message: string): Result<never, Violations> {
  return violated('IdentityNotAllowed', message);
}
