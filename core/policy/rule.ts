import type { CertificateRequest } from '../x509/model.ts';
import type { RequestObject } from '../kubernetes/certificate-signing-request.ts';
import type { RefusalCode } from '../outcome/outcome.ts';
import type { Profile } from './profile.ts';

/** The input of a rule. */
export interface Question {
  readonly profile: Profile;
  readonly object: RequestObject;
  readonly request: CertificateRequest;
}

export interface Rule {
  /** What is checked, for `csr explain`. */
  readonly check: string;
  readonly code: RefusalCode;
  /** Only for in-tree rules: the code if another signer uses the rule. */
  readonly codeElsewhere?: RefusalCode;
  /** The checked value, as text for `csr explain`. */
  observed(question: Question): string;
  /** Whether the request or the profile has what the rule is about; absent: always. Only for `csr explain`. */
  applies?(question: Question): boolean;
  /** The violations, one sentence each; empty if the rule holds. */
  violations(question: Question): readonly string[];
}

/** The message, if the condition does not hold. */
export function violationUnless(holds: boolean, message: string): readonly string[] {
  return holds ? [] : [message];
}
