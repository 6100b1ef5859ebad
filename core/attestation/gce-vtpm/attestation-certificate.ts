/**
 * The block ATTESTATION CERTIFICATE: Google's certificate of the key with which the vTPM signs. The plugin leaves it out if the
 * VM has no such certificate, so it is never required. If it is present, it must agree with everything else that is known.
 */
import type { KeyObject } from 'node:crypto';
import { childrenOf, contentOf, derTag, elementIn, isAscii } from '../../encoding/der-reader.ts';
import type { DerElement } from '../../encoding/der-reader.ts';
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { readCertificate } from '../../x509/read-certificate.ts';
import { signingKeyOf } from './signing-key.ts';
import type { VmIdentity } from './vm-identity.ts';

export interface AttestationCertificate {
  readonly der: Uint8Array;
  readonly key: KeyObject;
}

/** Google's cloudComputeInstanceIdentifier: which VM the certificate is for. */
const instanceIdentifier = '1.3.6.1.4.1.11129.2.1.21';

/** The identifier of the VM, where the certificate has one, must be that of `vm`. */
export function readAttestationCertificate(der: Uint8Array, vm: VmIdentity): Result<AttestationCertificate, Violation> {
  const read = readCertificate(der);
  if (!read.ok)
    return failure(violation('RequestMalformed', 'spec.request has an ATTESTATION CERTIFICATE that is not one in DER'));
  const facts = read.value;
  if (facts.isCa) return invalid('is the certificate of a CA');
  const key = signingKeyOf(facts.spki);
  if (key === undefined) return invalid('has no RSA key of 2048 bits or more');
  const identifier = facts.extensions.get(instanceIdentifier)?.value;
  if (identifier !== undefined && !identifies(identifier, vm))
    return invalid('is for another VM than VM IDENTITY names');
  return success({ der, key });
}

/**
 * SEQUENCE { zone, then two pairs of a number and a name }. gke-exec-auth-plugin reads the VM first and then the project
 * (pkg/nodeidentity), go-tpm-tools the project first; go-tpm-tools also knows security properties behind them.
 */
function identifies(value: Uint8Array, vm: VmIdentity): boolean {
  const [zone, firstNumber, firstName, secondNumber, secondName, properties, ...rest] =
    childrenOf(elementIn(value), derTag.sequence) ?? [];
  if (rest.length > 0 || (properties !== undefined && properties.tag !== 0xa0)) return false;
  const [stated, first, second] = [textOf(zone), pairOf(firstNumber, firstName), pairOf(secondNumber, secondName)];
  const [machine, project] = [`${vm.instanceId} ${vm.name}`, `${vm.projectNumber} ${vm.projectId}`];
  if (stated !== vm.zone) return false;
  return (first === machine && second === project) || (first === project && second === machine);
}

function pairOf(number: DerElement | undefined, name: DerElement | undefined): string {
  return `${numberOf(number)} ${textOf(name)}`;
}

function textOf(element: DerElement | undefined): string | undefined {
  if (element?.tag !== derTag.printableString && element?.tag !== derTag.utf8String) return undefined;
  const content = contentOf(element);
  return isAscii(content) ? Buffer.from(content).toString('latin1') : undefined;
}

/** Decimal. Go writes an unsigned number of 64 bits as a signed one. */
function numberOf(element: DerElement | undefined): string | undefined {
  if (element?.tag !== derTag.integer) return undefined;
  const content = contentOf(element);
  const signed = BigInt.asIntN(content.length * 8, BigInt(`0x${Buffer.from(content).toString('hex')}`));
  return (signed < 0n ? signed + 2n ** 64n : signed).toString();
}

function invalid(problem: string): Result<never, Violation> {
  return failure(violation('AttestationInvalid', `the attestation certificate ${problem}`));
}
