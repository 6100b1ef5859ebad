/** Creates missing CAs that Countersign makes itself. It never changes an existing one, so it can be repeated after any failure. */
import { createAuthority } from '../../../core/ca/create-authority.ts';
import type { CaAction } from './action.ts';
import { answerAbout, decodeCasRequest, logOfCas } from './cas.ts';
import type { CasRequest, OperatorAnswer } from './cas.ts';

export const init: CaAction<CasRequest, OperatorAnswer> = {
  decode: decodeCasRequest,
  run: (request, ports) => answerAbout(request, ports, (ca) => createAuthority(ca, ports)),
  logged: logOfCas,
};
