/**
 * The keys of countersign.yaml about attestation, of a profile and of a cluster. How values must fit together is checked in
 * core/configuration/resolve/attestation.ts; the keys of each provider are in core/configuration/providers/.
 */
import { z } from 'zod';
import { providerNames } from '../../policy/signer-names.ts';
import { flag, matching, texts } from '../fields/values.ts';
import { awsKeys } from '../providers/aws-keys.ts';
import { clusterApiKeys, machineObjects } from '../providers/cluster-api.ts';
import { gceKeys } from '../providers/gce.ts';
import { gceVtpmKeys } from '../providers/gce-vtpm.ts';
import { tpmKeys } from '../providers/tpm.ts';
import { x509Keys } from '../providers/x509.ts';

const pcrIndex = matching(/^([0-9]|1[0-9]|2[0-3])$/, 'must be the index of a PCR, from 0 to 23');

const pcrs = z.strictObject({
  bank: z.enum(['sha256']).default('sha256').describe('The bank of the values.'),
  values: z
    .record(
      pcrIndex,
      z
        .array(matching(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest in lower-case hex'))
        .min(1, 'must hold at least one value')
        .max(64),
    )
    .describe('The values that each PCR may have, by its index.'),
  events: z
    .record(
      pcrIndex,
      z
        .array(
          z
            .array(
              matching(
                /^[0-9a-f]{64} [!-~][ -~]{0,63}$/,
                'must be a SHA-256 digest in lower-case hex, a blank, and a name of at most 64 printable ASCII characters',
              ),
            )
            .min(1, 'must hold at least one event')
            .max(512),
        )
        .max(64),
    )
    .exactOptional()
    .describe(
      'The events that lead to `values`, by the index of the PCR: for each recorded boot the list of its events, as `countersign machines pcrs` prints them. They permit nothing: with them a refusal names the first event that differs.',
    ),
});

/** The key `attestation` of a profile. */
export const profileAttestation = z.strictObject({
  providers: z
    .array(z.enum(providerNames))
    .min(1, 'must name at least one provider')
    .exactOptional()
    .describe(
      'Whose evidence counts. Required; under `cluster.x-k8s.io/` the name of the signer says it. `insecure` has a signer of its own.',
    ),
  required: flag(
    true,
    'Whether a request without evidence is refused. `false`: it is answered as if nothing were attested here.',
  ),
  mode: z
    .enum(['enforce', 'audit'])
    .default('enforce')
    .describe(
      '`audit`: failed evidence is recorded, but refuses and registers nothing; valid evidence is a first use. For clusters that are being moved to attestation.',
    ),
  pcrs: pcrs
    .exactOptional()
    .describe('Values that the platform configuration registers of the TPM must have. Only for providers with a TPM.'),
  subjectAccessReview: flag(
    false,
    'Whether the relay, where it approves, also sends a SubjectAccessReview to the API server (`countersign-nodeclient` …). Only with `approval: approve`.',
  ),
});

/** The key `attestation` of a cluster. */
export const clusterAttestation = z.strictObject({
  audience: matching(/^[!-~]{1,253}$/, 'must be 1 to 253 printable ASCII characters without blanks')
    .exactOptional()
    .describe(
      'A name only this deployment has, part of every proof: evidence made for another deployment is refused. Default: `<account>/<region>/<cluster>` where `aws` names both, otherwise required.',
    ),
  aws: awsKeys
    .exactOptional()
    .describe(
      'Which instances of EC2 may join. Required where a profile takes evidence of `aws` or `aws-nitrotpm`: one policy for both.',
    ),
  tpm: tpmKeys
    .exactOptional()
    .describe('Which machines with a TPM may join. Required where a profile takes evidence of `tpm`.'),
  x509: x509Keys
    .exactOptional()
    .describe(
      'Which machines with a certificate of a PKI of yours may join. Required where a profile takes evidence of `x509`.',
    ),
  gce: gceKeys
    .exactOptional()
    .describe('Which VMs of Google may join. Required where a profile takes evidence of `gce`.'),
  'gce-vtpm': gceVtpmKeys
    .exactOptional()
    .describe('Which Shielded VMs of Google may join. Required where a profile takes evidence of `gce-vtpm`.'),
  retireTerminated: flag(
    true,
    'Whether attest retires machines that EC2 reports as terminated twice, every 10 minutes and when a caller reports a removed node. A retired machine loses its node name after one hour, and gets no certificate from then on.',
  ),
  machines: machineObjects,
  clusterApi: clusterApiKeys
    .exactOptional()
    .describe('The Cluster object whose Machines may join. With `machines: clusterApi` only.'),
  addressRanges: texts
    .default([])
    .describe(
      'Addresses that no platform knows of (VIPs, secondary networks): CIDR blocks. Each belongs to the machine that asks first.',
    ),
});
