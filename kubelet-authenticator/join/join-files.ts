/**
 * The files of a node that has joined, all at once or, as far as a file system allows, not at all: everything is looked at
 * before anything is written, each file appears whole, and the kubelet's kubeconfig comes last, so that whatever waits for
 * it (a systemd path unit, the kubelet's own restarts) finds the others in place.
 */
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import type { BootstrapToken } from '../../core/kubernetes/bootstrap-token.ts';
import { checkOwnDirectory, checkOwnPlace, readOwnFile } from '../files/own-files.ts';
import { encodeSettings, servingFile } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';

export interface JoinFile {
  readonly path: string;
  readonly mode: number;
  readonly text: string;
  /** Said instead of the text wherever somebody may look on. */
  readonly secret?: boolean;
}

/** Who makes the kubelet's serving certificate. */
export const servingWays = ['kubelet', 'attested', 'none'] as const;
export type ServingWay = (typeof servingWays)[number];

export interface JoinPlaces {
  /** `/etc/kubernetes` */
  readonly directory: string;
  /** The program that the kubelet calls. */
  readonly command: string;
}

export function placesOf(directory: string) {
  return {
    kubeconfig: join(directory, 'kubelet.conf'),
    dropIn: join(directory, 'kubelet.conf.d', '50-countersign.conf'),
    ca: join(directory, 'pki', 'ca.crt'),
    settings: join(directory, 'kubelet-authenticator', 'settings.json'),
    bootstrapCredentials: join(directory, 'kubelet-authenticator', 'bootstrap-credentials.json'),
  };
}

/** In the order of writing. */
export function joinFiles(
  settings: Settings,
  caPem: string,
  token: BootstrapToken,
  serving: ServingWay,
  { directory, command }: JoinPlaces,
): readonly JoinFile[] {
  const places = placesOf(directory);
  return [
    // Not in the kubeconfig: with it the kubelet, and whatever else reads that file, could ask for other nodes' names.
    {
      path: places.bootstrapCredentials,
      mode: 0o600,
      text: `${JSON.stringify({ token: tokenText(token) })}\n`,
      secret: true,
    },
    { path: places.ca, mode: 0o644, text: caPem },
    { path: places.settings, mode: 0o600, text: encodeSettings(settings) },
    { path: places.dropIn, mode: 0o644, text: kubeletDropIn(settings, serving, places.ca) },
    { path: places.kubeconfig, mode: 0o600, text: kubeletKubeconfig(settings, { command, settings: places.settings }) },
  ];
}

/** JSON, which is YAML too. */
export function kubeletKubeconfig(
  { nodeName, server, certificateAuthorityFile }: Settings,
  { command, settings }: { readonly command: string; readonly settings: string },
): string {
  const user = `system:node:${nodeName}`;
  const context = `${user}@kubernetes`;
  return json({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': context,
    contexts: [{ name: context, context: { cluster: 'kubernetes', user } }],
    clusters: [{ name: 'kubernetes', cluster: { server, 'certificate-authority': certificateAuthorityFile } }],
    users: [
      {
        name: user,
        user: {
          exec: {
            apiVersion: 'client.authentication.k8s.io/v1',
            command,
            args: ['exec', '--settings', settings],
            // The kubelet has no terminal.
            interactiveMode: 'Never',
            provideClusterInfo: false,
            installHint: 'kubelet-authenticator of Countersign is not installed on this node',
          },
        },
      },
    ],
  });
}

/** For the kubelet's --config-dir. Only what must be so; the rest is the main configuration's. */
export function kubeletDropIn(settings: Settings, serving: ServingWay, caFile: string): string {
  return json({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // With rotation on, the kubelet renews by itself and drops the exec section from its own client: the next
    // certificate would be asked for without a proof.
    rotateCertificates: false,
    serverTLSBootstrap: serving === 'kubelet',
    ...(serving === 'attested' ? { tlsCertFile: servingFile(settings), tlsPrivateKeyFile: servingFile(settings) } : {}),
    // Whom the kubelet lets in: the API server's client certificate is of the cluster's own CA.
    authentication: { x509: { clientCAFile: caFile } },
  });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Those that are there already with another content. The same content is no conflict: joining again changes nothing. */
export function conflicts(files: readonly JoinFile[]): readonly string[] {
  return files.filter((file) => ![undefined, file.text].includes(read(file.path))).map(({ path }) => path);
}

/** Throws UnsafeFileError, or what the file system says; what was written until then stays, and the kubeconfig is not among it. */
export function writeFiles(files: readonly JoinFile[], overwrite: boolean): void {
  for (const file of files) {
    checkOwnPlace(file.path);
    mkdirSync(dirname(file.path), { recursive: true, mode: 0o755 });
    checkOwnDirectory(dirname(file.path));
    if (read(file.path) !== file.text || file.secret === true) writeWhole(file, overwrite);
  }
}

function writeWhole({ path, mode, text }: JoinFile, overwrite: boolean): void {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  try {
    // `wx` follows no link that somebody put there, and the mode holds before the first byte is in.
    const descriptor = openSync(temporary, 'wx', mode);
    try {
      const bytes = Buffer.from(text, 'utf8');
      for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    // A link, unlike a rename, fails where something has come into being since we looked.
    if (overwrite || read(path) === text) renameSync(temporary, path);
    else linkSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function read(path: string): string | undefined {
  try {
    return readOwnFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
