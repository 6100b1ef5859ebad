import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { Terminal } from './terminal.ts';

/** One story the demo can tell: `npm run demo -- <name>`. */
export interface Scenario {
  readonly name: string;
  /** For --list: one line. */
  readonly summary: string;
  /** What was seen to hold when it ends well: the last line. */
  readonly proven: string;
  /** Whether it can also run on a real cluster (`--kubeconfig`). */
  readonly onRealCluster: boolean;
  /** Returns when all that was promised was seen to hold, throws DemoFailure when it was not. */
  readonly run: (world: DemoWorld) => Promise<void>;
}

export interface DemoWorld {
  readonly terminal: Terminal;
  /** The end of the demo's patience: after it nothing is waited for any more. */
  readonly signal: AbortSignal;
  /** A real cluster instead of the stand-in. */
  readonly kubeconfig?: string;
  /** Stands before the CA; a test puts a key there that signs wrongly. */
  readonly wrapAuthority?: (authority: Authority) => Authority;
  /** Stands before the stand-in for AWS; a test uses a platform there that confirms every claim. */
  readonly wrapAws?: (aws: AwsPorts) => AwsPorts;
}

/** An expectation of the demo failed. The message is for the user who runs it. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}
