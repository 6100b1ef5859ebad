/** Which provider registered a machine. */
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';
import type { IdentityRecord } from '../../ports/attestation-store.ts';
import type { AttestationProvider } from './provider.ts';

/**
 * Identities begin with the name of their provider. An EC2 instance has one identity for both providers of EC2, so that it cannot
 * be two nodes; the TPM on record shows by which of them it was registered.
 */
export function registrarOf({ identity, device }: Pick<IdentityRecord, 'identity' | 'device'>): string {
  const name = identity.slice(0, identity.indexOf('#'));
  return name === 'aws' && device !== undefined ? 'aws-nitrotpm' : name;
}

/**
 * A machine that its TPM vouched for needs its TPM from then on. Otherwise an attacker with the instance's credentials would send
 * the weaker evidence of `aws`.
 */
export function checkRegistrar(
  record: IdentityRecord | undefined,
  { name }: Pick<AttestationProvider, 'name'>,
): readonly Violation[] {
  if (record === undefined || name !== 'aws' || registrarOf(record) === name) return [];
  return [violation('AttestationInvalid', 'this machine is registered with its TPM, and the evidence is without')];
}
