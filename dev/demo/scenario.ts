import type { AwsPorts } from '../../core/attestation/aws/endpoints.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { Terminal } from './terminal.ts';

/** One scenario of the demo: `npm run demo -- <name>`. */
export interface Scenario {
  readonly name: string;
  /** For --list: one line. */
  readonly summary: string;
  /** The last line of a successful run: what it has checked. */
  readonly proven: string;
  /** Whether it can also run on a real cluster (`--kubeconfig`). */
  readonly onRealCluster: boolean;
  /** Returns if all checks hold; otherwise throws DemoFailure. */
  readonly run: (world: DemoWorld) => Promise<void>;
}

export interface DemoWorld {
  readonly terminal: Terminal;
  /** Aborted when the time of the demo is over. */
  readonly signal: AbortSignal;
  /** A real cluster instead of the stand-in. */
  readonly kubeconfig?: string;
  /** Wraps the CA: a test plants a key that signs wrongly. */
  readonly wrapAuthority?: (authority: Authority) => Authority;
  /** Wraps the stand-in for AWS: a test plants a platform that confirms every claim. */
  readonly wrapAws?: (aws: AwsPorts) => AwsPorts;
}

/** An expectation of the demo failed. The message is for the user who runs it. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}
