/** Does the platform's description of the machine agree with the request, and with its Machine object? */
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { quoted } from '../outcome/printable-text.ts';
import { nameMatches } from '../policy/patterns.ts';
import { providerIdType } from '../x509/certificate-request.ts';
import type { AttestQuestion } from './attest-question.ts';
import { objectOf } from './cluster-api/check-objects.ts';
import type { Machine } from './evidence/provider.ts';

export function checkMachine(question: AttestQuestion, machine: Machine, identity: string): readonly Violation[] {
  const { request, nodeName } = question;
  if (machine.identity !== identity) throw new Error('the provider describes another machine than it examined');
  const violations: Violation[] = [];
  if (!machine.nodeNames.some((pattern) => nameMatches(pattern, nodeName)))
    violations.push(violation('IdentityNotAllowed', `this machine may not be called ${quoted(nodeName)}`));
  // Stock kubelets send neither evidence nor a provider ID.
  const { providerId: sent = machine.mayOmitProviderId === true ? machine.providerId : undefined } = request;
  if (request.evidence.length > 0 && sent === undefined)
    violations.push(violation('AttestationInvalid', `the request lacks the provider ID extension (${providerIdType})`));
  else if (request.evidence.length > 0 && sent !== machine.providerId)
    violations.push(violation('AttestationInvalid', `the provider ID extension must be ${quoted(machine.providerId)}`));
  const object = objectOf(question);
  if (object !== undefined && object.providerId !== machine.providerId) {
    const about = `${object.kind} ${quoted(`${object.namespace}/${object.name}`)}`;
    const message = `${about} has provider ID ${quoted(object.providerId)}, and the machine is ${quoted(machine.providerId)}`;
    violations.push(violation('MachineMismatch', message));
  }
  return violations;
}
