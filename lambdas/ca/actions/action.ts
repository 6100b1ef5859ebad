/** One action of the ca function: the event that asks for it, what it does, and what is logged of it. */
import type { CallReport } from '../../../adapters/lambda/operator-call.ts';
import type { JsonObject } from '../../../core/encoding/json-object.ts';
import type { CaPorts } from './ports.ts';

/** What each answer has: `--function` may name the ca function of another cluster. */
export interface ClusterAnswer {
  readonly cluster: string;
}

export interface CaAction<Request, Answer> {
  /** The request, from an event without its field `action`. `undefined` for other fields or types. */
  readonly decode: (fields: JsonObject) => Request | undefined;
  /** Throws for temporary failures and for a wrong deployment. */
  readonly run: (request: Request, ports: CaPorts) => Promise<Answer>;
  /** Never keys, certificates or what callers sent. */
  readonly logged: (answer: Answer, ports: CaPorts) => CallReport;
}
