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
  /** Whether it can also be played on a cluster of somebody's (`--kubeconfig`). */
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
  /** Stands before the stand-in for AWS; a test puts a platform there that says yes to everybody. */
  readonly wrapAws?: (aws: AwsPorts) => AwsPorts;
}

/** Something did not come out as it must. The message is for whoever runs the demo. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}
