/**
 * The blocks with which gke-exec-auth-plugin follows its certificate request, read completely: what the vTPM of a Google VM
 * certified, its signature, the VM that the requester claims to be, and at times the certificate of the key that signed.
 *
 * All checks that need neither Google nor a configuration are here, so a profile without attestation makes them too.
 */
import type { KeyObject } from 'node:crypto';
import type { PemBlock } from '../../encoding/pem.ts';
import { violation } from '../../outcome/outcome.ts';
import type { RefusalCode, Violation } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { CertificateRequest } from '../../x509/model.ts';
import { decodeAttest } from '../tpm/structures/attest.ts';
import type { ClockInfo } from '../tpm/structures/attest.ts';
import { readAttestationCertificate } from './attestation-certificate.ts';
import type { AttestationCertificate } from './attestation-certificate.ts';
import { certifiedNames } from './certified-key.ts';
import { isSignedBy } from './signing-key.ts';
import { readVmIdentity } from './vm-identity.ts';
import type { VmIdentity } from './vm-identity.ts';

export const vmLabels = {
  attestation: 'ATTESTATION DATA',
  signature: 'ATTESTATION SIGNATURE',
  identity: 'VM IDENTITY',
  certificate: 'ATTESTATION CERTIFICATE',
} as const;

/** Of RSA keys of 2048 and 4096 bits. */
const leastSignatureBytes = 256;
const mostSignatureBytes = 512;

export interface VmEvidence {
  readonly vm: VmIdentity;
  readonly clock: ClockInfo;
  readonly certificate?: AttestationCertificate;
  /** Whether this key signed the certification of the requested key. */
  readonly isSignedBy: (key: KeyObject) => boolean;
}

/** decodePem has checked the order and the number of the blocks. Whose key signed is not decided here. */
export function readVmEvidence({ evidence, publicKey }: CertificateRequest): Result<VmEvidence, Violation> {
  const attestation = contentOf(evidence, vmLabels.attestation);
  const signature = contentOf(evidence, vmLabels.signature);
  const identity = contentOf(evidence, vmLabels.identity);
  if (attestation === undefined || signature === undefined || identity === undefined)
    return malformed('lacks one of the blocks ATTESTATION DATA, ATTESTATION SIGNATURE, VM IDENTITY');

  const statement = decodeAttest(attestation);
  if (!statement.ok) return malformed(`has ATTESTATION DATA that ${statement.problem}`);
  if (statement.value.kind !== 'certification') return malformed('has ATTESTATION DATA that certifies no key');
  const { name: certified, extraData, clock } = statement.value;
  // The plugin leaves it empty. Another program that has keys certified for another purpose puts its challenge there.
  if (extraData.length > 0) return invalid('the attestation was made for another purpose: it has extraData');
  const names = certifiedNames(publicKey.spki);
  if (!names.ok) return invalid(`the requested key ${names.problem}`);
  if (!names.value.some((name) => Buffer.compare(name, certified) === 0))
    return invalid('the attestation certifies another key than the requested one');

  if (signature.length < leastSignatureBytes || signature.length > mostSignatureBytes)
    return malformed('has an ATTESTATION SIGNATURE that is not one of RSA');
  const vm = readVmIdentity(identity);
  if (vm === undefined) return malformed('has a VM IDENTITY that is not as gke-exec-auth-plugin writes it');
  const verified = (key: KeyObject): boolean => isSignedBy(key, attestation, signature);
  const evidenceOf = { vm, clock, isSignedBy: verified };
  const der = contentOf(evidence, vmLabels.certificate);
  if (der === undefined) return success(evidenceOf);
  const certificate = readAttestationCertificate(der, vm);
  if (!certificate.ok) return certificate;
  if (!verified(certificate.value.key))
    return invalid('the key of the attestation certificate did not sign the attestation');
  return success({ ...evidenceOf, certificate: certificate.value });
}

function contentOf(blocks: readonly PemBlock[], label: string): Uint8Array | undefined {
  return blocks.find((block) => block.label === label)?.content;
}

function malformed(problem: string): Result<never, Violation> {
  return refuse('RequestMalformed', `spec.request ${problem}`);
}

function invalid(message: string): Result<never, Violation> {
  return refuse('AttestationInvalid', message);
}

function refuse(code: RefusalCode, message: string): Result<never, Violation> {
  return failure(violation(code, message));
}
