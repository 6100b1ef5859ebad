/** What the test and its workers say to one another. */
import type { HttpEvent } from '../../../../adapters/lambda/http.ts';

/** Faults made on purpose, to prove that the runner sees them and goes on. */
export const plants = [
  'hang', // computes for ever
  'wait', // never answers
  'exit', // ends the process
  'throw', // an uncaught exception
  'reject', // an unhandled rejection
  'heap', // more objects than the heap holds
  'buffer', // more memory than a request is worth, outside the heap
  'server-error', // answers 500
  'busy', // answers 503
  'unnamed', // refuses with a code outside the list
  'nameless', // refuses without a code
  'unmarked', // answers without our header
  'reflects', // puts what was sent into the message
  'other-names', // issues a certificate for another subject
] as const;
export type Plant = (typeof plants)[number];

export interface ToWorker {
  readonly event: HttpEvent;
  /** The bytes of spec.request, where the case has any, so that the worker can say how far they got. */
  readonly request?: Uint8Array;
  readonly plant?: Plant;
}

export interface StartWorker {
  readonly caCertificate: string;
  readonly caKey: string;
}

export interface FromWorker {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of `request`: whether its PEM was read, and whether its signature was found to be right. */
  readonly pastPem: boolean;
  readonly pastSignature: boolean;
  readonly cpuMilliseconds: number;
  /** By how much the process's highest memory use rose. */
  readonly grownMegabytes: number;
}
