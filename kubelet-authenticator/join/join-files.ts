/**
 * The files of a node that has joined. All of them are checked before the first is written, and each one appears complete.
 * The kubelet's kubeconfig is written last, so that a systemd path unit or a kubelet that waits for it finds the others.
 */
import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tokenText } from '../../core/kubernetes/bootstrap-token.ts';
import { flushDirectory, writeNewFile } from '../files/cache.ts';
import { checkOwnDirectory, checkOwnPlace, readOwnFile } from '../files/own-files.ts';
import { encodeSettings, servingFile } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';
import type { FirstLogin } from './first-login.ts';

export interface JoinFile {
  readonly path: string;
  readonly mode: number;
  readonly text: string;
  /** The text must not be printed. */
  readonly secret?: boolean;
}

/** Who requests the kubelet's serving certificate. */
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

/** The files, in the order in which they are written. */
export function joinFiles(
  settings: Settings,
  caPem: string,
  login: FirstLogin,
  serving: ServingWay,
  { directory, command }: JoinPlaces,
): readonly JoinFile[] {
  const places = placesOf(directory);
  return [
    // The token is not in the kubeconfig: with it every reader of that file could request certificates for other node names.
    ...(login.kind === 'token'
      ? [
          {
            path: places.bootstrapCredentials,
            mode: 0o600,
            text: `${JSON.stringify({ token: tokenText(login.token) })}\n`,
            secret: true,
          },
        ]
      : []),
    { path: places.ca, mode: 0o644, text: caPem },
    { path: places.settings, mode: 0o600, text: encodeSettings(settings) },
    { path: places.dropIn, mode: 0o644, text: kubeletDropIn(settings, serving, places.ca) },
    { path: places.kubeconfig, mode: 0o600, text: kubeletKubeconfig(settings, { command, settings: places.settings }) },
  ];
}

/** JSON is also valid YAML. */
function kubeletKubeconfig(
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

/** A drop-in for the kubelet's --config-dir, with only the settings that the plugin requires. */
function kubeletDropIn(settings: Settings, serving: ServingWay, caFile: string): string {
  return json({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // With rotation on, the kubelet renews its certificate itself and drops the exec section from its client: it would
    // request the next certificate without evidence.
    rotateCertificates: false,
    serverTLSBootstrap: serving === 'kubelet',
    ...(serving === 'attested' ? { tlsCertFile: servingFile(settings), tlsPrivateKeyFile: servingFile(settings) } : {}),
    // The kubelet authenticates the API server's client certificate with the cluster's CA.
    authentication: { x509: { clientCAFile: caFile } },
  });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Files that exist with other content. The same content is no conflict: joining again changes nothing. */
export function conflicts(files: readonly JoinFile[]): readonly string[] {
  return files.filter((file) => ![undefined, file.text].includes(read(file.path))).map(({ path }) => path);
}

/** Throws UnsafeFileError or the file system's error. Files written before that stay; the kubeconfig is not among them. */
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
    writeNewFile(temporary, text, mode);
    // A link, unlike a rename, fails if a file of that name was created since the check.
    if (overwrite || read(path) === text) renameSync(temporary, path);
    else linkSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  flushDirectory(dirname(path));
}

function read(path: string): string | undefined {
  try {
    return readOwnFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
