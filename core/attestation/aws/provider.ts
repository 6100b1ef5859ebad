/**
 * The provider for EC2 instances (docs/attestation/aws.md). The evidence claims account, region and instance id, and holds the
 * proof of instance-proof.ts. `aws/v1` evidence also holds the instance identity document, signed by the region (evidence.ts).
 */
import type { AwsAttestation } from '../../configuration/providers/aws.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AwsPorts } from './endpoints.ts';
import { readAwsEvidence } from './evidence.ts';
import { goneInstances } from './fleet.ts';
import type { AwsEvidenceVersion } from './evidence.ts';
import { pinCertificate } from './cms.ts';
import type { PinnedCertificate } from './cms.ts';
import type { AttestationProvider, Evidence, Examined } from '../evidence/provider.ts';
import { describeByIdentity, examineInstance, invalid } from './instance-proof.ts';

interface Aws extends AwsPorts {
  readonly policy: AwsAttestation;
  /** Newest first. */
  readonly versions: readonly [AwsEvidenceVersion, ...AwsEvidenceVersion[]];
  readonly certificates: readonly PinnedCertificate[];
}

/** Throws if a region certificate cannot be read. */
export function awsProvider(policy: AwsAttestation, ports: AwsPorts): AttestationProvider {
  const { fleet } = ports;
  const versions = acceptedVersions(policy);
  // The certificates verify identity documents, which only aws/v1 has.
  const regions = versions.includes('aws/v1') ? [...ports.regionCertificates] : [];
  const certificates = regions.flatMap(([region, ders]) => ders.map((der) => pinCertificate(region, der)));
  const aws: Aws = { ...ports, policy, versions, certificates };
  return {
    name: 'aws',
    versions,
    secure: true,
    // With allowRestart each use of a machine must record when it was started last (second-look.ts).
    ...(policy.allowRestart
      ? { restartWindow: policy.restartWindowMinutes * 60_000 }
      : { reusesDescriptions: true as const }),
    examine: (evidence) => examine(aws, evidence),
    describe: (identity) => describeByIdentity(aws, identity),
    // An instance has one identity, so this list is also that of provider aws-nitrotpm.
    ...(fleet === undefined ? {} : { goneMachines: () => goneInstances(policy, fleet) }),
  };
}

/**
 * STS confirms the name of a session, which is the instance id. Only EC2 names sessions of the instance identity role, so there
 * the name proves the instance. With any other role a principal can choose the name, so the document (aws/v1) is needed too.
 */
function acceptedVersions({ requireIdentityRole, acceptV1 }: AwsAttestation): Aws['versions'] {
  if (!requireIdentityRole) return ['aws/v1'];
  return acceptV1 ? ['aws/v2', 'aws/v1'] : ['aws/v2'];
}

function examine(aws: Aws, evidence: Evidence): Result<Examined, Violations> {
  const { data, now } = evidence;
  const version = aws.versions.find((accepted) => accepted === evidence.version);
  if (version === undefined) return invalid('the attestation data is of a version that is not taken');
  const sent = readAwsEvidence(version, data, aws.certificates, now);
  if (!sent.ok) return invalid(sent.problem);
  const examined = examineInstance(aws, sent.value, evidence);
  if (!examined.ok) return examined;
  const { verify, confirm, ...instance } = examined.value;
  return success({
    ...instance,
    verify: async () => {
      const verified = await verify();
      return verified.ok ? success(verified.value.machine) : verified;
    },
    ...(confirm === undefined
      ? {}
      : {
          confirm: async (seen) => {
            const confirmed = await confirm();
            return confirmed.ok ? success(seen) : confirmed;
          },
        }),
  });
}
