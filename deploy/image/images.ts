/** The images: what each runs, and how. */
import { basename } from 'node:path';
import { version } from '../../core/version.ts';
import type { Script } from '../bundle.ts';
import { buildCliScript } from '../cli/build.ts';
import { buildRelay, buildTokenReconcile } from './build.ts';

export interface Image {
  readonly name: string;
  readonly build: (out: string) => Promise<Script>;
  /** Flags of Node. */
  readonly flags: readonly string[];
  /** A folder that the user need not have: AWS's SDK fails without the variable. User IDs of OpenShift have no home folder. */
  readonly home: string;
  readonly port?: number;
}

/**
 * Node's permission model: even an intruder cannot write files or start processes, threads or native code. The heap limits are
 * below the chart's memory limits, so that an overfull process fails with a message and is not killed by the kernel.
 */
const restricted = ['--permission', '--allow-fs-read=*'];

export const images = {
  relay: {
    name: 'watch-relay',
    build: buildRelay,
    // Most objects are short-lived: 4 MB of young heap are enough, where Node would use up to 96 MB for fewer collections.
    flags: [...restricted, '--max-semi-space-size=4', '--max-old-space-size=384'],
    home: '/nonexistent',
    port: 8080,
  },
  tokenReconcile: {
    name: 'token-reconcile',
    build: buildTokenReconcile,
    flags: [...restricted, '--max-old-space-size=96'],
    home: '/nonexistent',
  },
  // It writes the files that its user asks for, and starts the programs that a kubeconfig names.
  cli: { name: 'countersign', build: buildCliScript, flags: [], home: '/home/nonroot' },
} as const satisfies Record<string, Image>;

export const nodePath = '/usr/local/bin/node';
export const programFolder = '/opt/countersign';

/** The program and its flags, as the kernel starts them. */
export function entrypointOf({ flags }: Image, script: string): readonly string[] {
  return [nodePath, ...flags, `${programFolder}/${basename(script)}`];
}

/** What the configuration of the image says about the process. */
export function processOf(image: Image, script: string): object {
  return {
    User: '65532:65532',
    ...(image.port === undefined ? {} : { ExposedPorts: { [`${image.port}/tcp`]: {} } }),
    Env: ['PATH=/usr/local/bin', `HOME=${image.home}`],
    Entrypoint: entrypointOf(image, script),
    WorkingDir: '/',
    Labels: {
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.title': `countersign-${image.name}`.replace('countersign-countersign', 'countersign'),
      'org.opencontainers.image.version': version,
    },
  };
}
