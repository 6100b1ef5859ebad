/**
 * The provider for machines with a TPM 2.0 (docs/attestation/tpm.md). The endorsement key names the machine. Its trust comes from
 * the operator: roots of its certificate, a list of keys, or the list of machines, which is also what a cloud's API is for
 * other providers: the source of node names and addresses.
 */
import type { TpmAttestation } from '../../configuration/providers/tpm.ts';
import { violation } from '../../outcome/outcome.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { MachineEntry } from '../../ports/attestation-store.ts';
import { readAnchors } from '../../x509/chain/verify-chain.ts';
import type { Anchors } from '../../x509/chain/verify-chain.ts';
import type { AttestationProvider, Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import { examineDevice, invalid, verifyDevice } from './device.ts';
import { verifyEkCertificate } from './ek-certificate.ts';
import { decodeEndorsementKey } from './endorsement-key.ts';
import type { EndorsementKey } from './endorsement-key.ts';
import { readTpmEvidence, tpmFacts } from './evidence.ts';
import type { TpmPorts } from './ports.ts';

interface Tpm {
  readonly policy: TpmAttestation;
  readonly audience: string;
  readonly anchors: Anchors;
  readonly ports: TpmPorts;
}

/** Throws if a root or intermediate certificate cannot be read. `audience`: of the deployment, as in binding digests. */
export function tpmProvider(policy: TpmAttestation, audience: string, ports: TpmPorts): AttestationProvider {
  const { roots, intermediates } = policy;
  const anchors = readAnchors('attestation.tpm', { roots: [{ name: 'roots', certificates: roots }], intermediates });
  const tpm = { policy, audience, anchors, ports };
  return {
    ...tpmFacts,
    examine: (evidence) => examine(tpm, evidence),
    describe: (identity) => describe(tpm, identity),
  };
}

async function examine(tpm: Tpm, evidence: Evidence): Promise<Result<Examined, Violations>> {
  const sent = readTpmEvidence(evidence.data);
  if (!sent.ok) return invalid(`the attestation data ${sent.problem}`);
  const decoded = decodeEndorsementKey(sent.value.endorsementKey);
  if (!decoded.ok) return invalid(`the endorsement key ${decoded.problem}`);
  const endorsementKey = decoded.value;
  const device = examineDevice(sent.value, evidence);
  if (!device.ok) return device;
  const distrust = await checkTrust(tpm, endorsementKey, evidence.now);
  if (distrust !== undefined) return failure([distrust]);

  const identity = identityOf(endorsementKey.hash);
  return success({
    identity,
    once: device.value.once,
    machines: tpm.policy.machines === 'listed' ? [identity] : [],
    verify: async () => {
      const machine = await findMachine(tpm, endorsementKey.hash);
      if (!machine.ok) return failure([machine.problem]);
      const { audience, ports } = tpm;
      const verified = await verifyDevice(device.value, endorsementKey, { audience, now: evidence.now, ports });
      return verified.ok ? success({ ...machine.value, device: verified.value }) : verified;
    },
  });
}

/** Why this endorsement key is not trusted. `undefined`: it is, or `findMachine` decides. */
async function checkTrust(
  { policy, anchors }: Tpm,
  endorsementKey: EndorsementKey,
  now: number,
): Promise<Violation | undefined> {
  if (policy.endorsementKeys.includes(endorsementKey.hash) || trustsList(policy)) return undefined;
  if (policy.roots.length === 0)
    return violation('IdentityNotAllowed', 'the endorsement key is not one that attestation.tpm names');
  const verified = await verifyEkCertificate(endorsementKey, anchors, now);
  return verified.ok
    ? undefined
    : violation('AttestationInvalid', `the certificate of the endorsement key ${verified.problem}`);
}

/** Without roots an entry for exactly this key is the operator's word that the key is in a TPM. */
function trustsList({ roots, machines }: TpmAttestation): boolean {
  return roots.length === 0 && machines === 'listed';
}

/** The machine as the operator's list and the configuration describe it. */
async function findMachine({ policy, ports }: Tpm, hash: string): Promise<Result<Machine, Violation>> {
  const entry = await ports.findMachine(identityOf(hash));
  if (entry === undefined && policy.machines === 'listed') return failure(notListed);
  return success(describeMachine(policy, hash, entry));
}

const notListed = violation('IdentityNotAllowed', 'this machine is not on the list (countersign machines allow)');

function describeMachine(policy: TpmAttestation, hash: string, entry: MachineEntry | undefined): Machine {
  const { nodeName, addresses = [], dnsNames = [] } = entry ?? {};
  return {
    identity: identityOf(hash),
    providerId: `tpm:///${hash}`,
    nodeNames: nodeName === undefined ? policy.nodeNames : [nodeName],
    addresses,
    dnsNames,
    ...(entry === undefined ? {} : { entry: entry.name }),
  };
}

/** The list is the platform: a machine that the operator removed from it is unknown. */
async function describe({ policy, ports }: Tpm, identity: string): Promise<MachineState> {
  const hash = hashOf(identity);
  if (hash === undefined) return { kind: 'stopped' };
  const entry = await ports.findMachine(identity);
  if (entry === undefined && policy.machines === 'listed') return { kind: 'unknown' };
  return { kind: 'running', machine: describeMachine(policy, hash, entry), violations: [] };
}

function identityOf(hash: string): string {
  return `tpm#${hash}`;
}

function hashOf(identity: string): string | undefined {
  return /^tpm#([0-9a-f]{64})$/.exec(identity)?.[1];
}
