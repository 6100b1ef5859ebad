/**
 * The provider for EC2 instances with a NitroTPM (docs/attestation/aws-nitrotpm.md). EC2 vouches for the instance, as in provider
 * aws, and names the endorsement key of its TPM; the TPM signs the request, as in provider tpm. So neither the instance's
 * credentials nor another TPM is enough.
 */
import type { AwsAttestation } from '../../configuration/providers/aws.ts';
import { violated } from '../../outcome/outcome.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AwsPorts, EndorsementKeyEndpoint, EndorsementKeyType, InstancePlace } from '../aws/endpoints.ts';
import { describeByIdentity, examineInstance, invalid } from '../aws/instance-proof.ts';
import type { AttestationProvider, Evidence, Examined, Machine } from '../evidence/provider.ts';
import { examineDevice, verifyDevice } from '../tpm/device.ts';
import { decodeEndorsementKey } from '../tpm/endorsement-key.ts';
import type { EndorsementKey, EndorsementKeyKind } from '../tpm/endorsement-key.ts';
import type { TpmPorts } from '../tpm/ports.ts';
import { awsNitroTpmFacts, readAwsNitroTpmEvidence } from './evidence.ts';

export interface AwsNitroTpmPorts extends Pick<AwsPorts, 'sts' | 'ec2'>, Omit<TpmPorts, 'findMachine'> {
  readonly endorsementKeys: EndorsementKeyEndpoint;
}

interface NitroTpm {
  /** Which instances may join: that of provider aws. */
  readonly policy: AwsAttestation;
  readonly audience: string;
  readonly ports: AwsNitroTpmPorts;
}

/** `audience`: of the deployment, as in binding digests. */
export function awsNitroTpmProvider(
  policy: AwsAttestation,
  audience: string,
  ports: AwsNitroTpmPorts,
): AttestationProvider {
  return {
    ...awsNitroTpmFacts,
    examine: (evidence) => examine({ policy, audience, ports }, evidence),
    describe: (identity) => describeByIdentity({ policy, ...ports }, identity),
  };
}

function examine({ policy, audience, ports }: NitroTpm, evidence: Evidence): Result<Examined, Violations> {
  const sent = readAwsNitroTpmEvidence(evidence.data);
  if (!sent.ok) return invalid(sent.problem);
  const { aws, device: sentDevice, endorsementKeyType } = sent.value;
  const instance = examineInstance({ policy, ...ports }, aws, evidence);
  if (!instance.ok) return instance;
  const device = examineDevice(sentDevice, evidence);
  if (!device.ok) return device;
  const { identity, machines, once, confirm } = instance.value;
  const { instanceId } = aws.instance;
  const withDevice = async (machine: Machine, place: InstancePlace) => {
    const endorsementKey = await findEndorsementKey(ports, { instanceId, place }, endorsementKeyType);
    if (!endorsementKey.ok) return endorsementKey;
    const tpm = await verifyDevice(device.value, endorsementKey.value, { audience, now: evidence.now, ports });
    return tpm.ok ? success({ ...machine, device: tpm.value }) : tpm;
  };
  return success({
    identity,
    machines,
    once: [...once, ...device.value.once],
    verify: async () => {
      const verified = await instance.value.verify();
      if (!verified.ok) return verified;
      const { machine, place, instance: described } = verified.value;
      if (described.tpmSupport !== 'v2.0') return violated('IdentityNotAllowed', 'the instance has no NitroTPM 2.0');
      return withDevice(machine, place);
    },
    ...(confirm === undefined
      ? {}
      : {
          // The instance is registered by its NitroTPM, so it had one when it was seen.
          confirm: async (seen: Machine) => {
            const confirmed = await confirm();
            return confirmed.ok ? withDevice(seen, confirmed.value) : confirmed;
          },
        }),
  });
}

const kinds: Readonly<Record<EndorsementKeyType, EndorsementKeyKind>> = {
  'rsa-2048': 'RSA-2048',
  'ecc-sec-p384': 'P-384',
};

/** The key that EC2 names for exactly the instance that STS confirmed: a requester cannot choose it. */
async function findEndorsementKey(
  { endorsementKeys }: AwsNitroTpmPorts,
  { instanceId, place }: { readonly instanceId: string; readonly place: InstancePlace },
  type: EndorsementKeyType,
): Promise<Result<EndorsementKey, Violations>> {
  const der = await endorsementKeys(place, instanceId, type);
  const key = decodeEndorsementKey({ kind: 'spki', der });
  if (!key.ok) return invalid(`the endorsement key that EC2 names ${key.problem}`);
  return key.value.kind === kinds[type] ? key : invalid(`the endorsement key that EC2 names is not ${type}`);
}
