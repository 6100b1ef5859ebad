/**
 * The TPM behind a request, compared with the record of its machine. The quote of each request shows the attestation key and
 * the TPM's clock. A key that the record does not name must first be activated: only then is it known to be in the same TPM as
 * the endorsement key that names the machine.
 */
import type { DeviceState } from '../ports/attestation-store.ts';
import { violation } from '../outcome/outcome.ts';
import type { Challenged, Refused } from './declined.ts';
import { refuse } from './declined.ts';
import type { Device, Machine } from './evidence/provider.ts';

/** JSON: what kubelet-authenticator needs for its next request (docs/attestation/tpm.md). */
const challengeAnnotation = 'countersign.dev/attestation-challenge';
/** Cluster API's proposal: base64 of the SubjectPublicKeyInfo. We write it, and never read it. */
const endorsementKeyAnnotation = 'cluster-x-k8s-io/tpm-endorsement-key';

/** For the request of a machine with a TPM, approved or challenged. */
export function deviceAnnotations({ device }: Pick<Machine, 'device'>): Readonly<Record<string, string>> {
  const key = device?.endorsementKey;
  return key === undefined ? {} : { [endorsementKeyAnnotation]: Buffer.from(key).toString('base64') };
}

/** `recorded`: the state at the last use of the machine. */
export async function checkDevice(
  { device }: Pick<Machine, 'device'>,
  recorded: DeviceState | undefined,
): Promise<Refused | Challenged | undefined> {
  if (device === undefined) return undefined;
  const { state, activated } = device;
  if (recorded !== undefined && wentBack(device, recorded))
    return refuse(violation('AttestationInvalid', 'the clock of the TPM is before that of its last use'));
  if (activated || recorded?.akName === state.akName) return undefined;
  return {
    kind: 'challenged',
    violations: [violation('AttestationChallenge', 'the machine must answer the challenge with its next request')],
    annotations: { ...deviceAnnotations({ device }), [challengeAnnotation]: await device.challenge() },
  };
}

/**
 * A quote that an attacker kept has a lower resetCount, or the same one and an earlier clock. The clock is compared within one
 * resetCount only: after a power failure a TPM resumes from the clock that it stored last (TPM 2.0 Part 1, Timing Components).
 * TPMS_CLOCK_INFO.safe is not looked at: a software TPM says YES again before it has passed the clock that it showed before.
 */
function wentBack({ state: { resetCount, clock } }: Device, recorded: DeviceState): boolean {
  return resetCount < recorded.resetCount || (resetCount === recorded.resetCount && clock < recorded.clock);
}
