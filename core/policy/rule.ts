import type { CertificateRequest } from '../x509/model.ts';
import type { RequestObject } from '../kubernetes/certificate-signing-request.ts';
import type { RefusalCode } from '../outcome/outcome.ts';
import type { Profile } from './profile.ts';

/** What a rule looks at. */
export interface Question {
  readonly profile: Profile;
  readonly object: RequestObject;
  readonly request: CertificateRequest;
}

export interface Rule {
  /** What is checked, for `csr explain`. */
  readonly check: string;
  readonly code: RefusalCode;
  /** Of in-tree rules: the code where they hold for a signer that is not in-tree. */
  readonly codeElsewhere?: RefusalCode;
  /** The value that is judged, for people. */
  observed(question: Question): string;
  /** What is wrong with it, a sentence each; nothing when the rule holds. */
  violations(question: Question): readonly string[];
}

/** The message when it does not hold. */
export function violationUnless(holds: boolean, message: string): readonly string[] {
  return holds ? [] : [message];
}
