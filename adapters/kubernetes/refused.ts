import type { ApiProblem, ApiRefusal } from '../../core/ports/kubernetes-api.ts';

/** A definite "no" of the API server, as the typed clients (clients.ts) report it. Importing this file loads no library. */
export class ApiRefused extends Error {
  override readonly name = 'ApiRefused';
  readonly why: ApiRefusal;

  constructor({ why, message }: ApiProblem) {
    super(message);
    this.why = why;
  }
}
