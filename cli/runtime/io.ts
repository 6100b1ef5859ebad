import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Ec2Fleet } from '../../core/attestation/aws/fleet.ts';
import type { ApiAnswer, JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { Ec2Endpoint } from '../../core/attestation/aws/endpoints.ts';
import type { AttestationAdmin, AttestationStore } from '../../core/ports/attestation-store.ts';

export type RegisterPlace =
  | { readonly kind: 'embedded'; readonly folder: string }
  | { readonly kind: 'deployed'; readonly cluster: string; readonly table?: string; readonly region?: string };

export interface OpenRegister {
  readonly register: AttestationAdmin;
  readonly store: Pick<AttestationStore, 'findIdentity' | 'findNode' | 'findLock'>;
  /** Who changes things here, for the audit items: an ARN, or a user name of this machine. */
  by(): Promise<string>;
  close(): void;
}

export interface FunctionCall {
  readonly functionName: string;
  /** Left out: as everywhere in AWS's tools (AWS_REGION, the profile). */
  readonly region?: string;
  readonly request: object;
}

export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  now(): Instant;
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array;
  /** Of whoever runs this, as the operating system knows him. */
  userName(): string;
  fileExists(path: string): boolean;
  /** `-` is standard input. Rejects with Node's error when it cannot be read, with code EFBIG beyond `maxInputBytes`. */
  read(path: string): Promise<Uint8Array>;
  /** One request object of a cluster. Throws CommandFailure for an unusable login, anything else when the cluster does not answer. */
  fetchRequest(name: string, login: ClusterLogin): Promise<ApiAnswer<JsonObject>>;
  /** What a Lambda function gave. Throws CommandFailure when it cannot be called or failed. */
  callFunction(call: FunctionCall): Promise<unknown>;
  /** Names of all nodes of a cluster; fails as `fetchRequest` does. */
  fetchNodeNames(login: ClusterLogin): Promise<ApiAnswer<readonly string[]>>;
  /** What attestation remembers of a cluster. Throws CommandFailure when it is not there. */
  openRegister(place: RegisterPlace): Promise<OpenRegister>;
  /** EC2 as seen by the operator who is logged in to AWS here. */
  connectEc2(): Promise<Ec2Fleet & Ec2Endpoint>;
}

export interface ClusterLogin {
  readonly kubeconfig: string;
  readonly context?: string;
}

/** An object of a cluster is 3 MiB at most; a device or a pipe may never end. */
export const maxInputBytes = 8 * 1_048_576;

/** Where kubectl looks: the flag, then the first file of KUBECONFIG, then ~/.kube/config. */
export function kubeconfigPath(flag: string | undefined, { environment }: Io): string {
  const fromEnvironment = environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  return flag ?? fromEnvironment ?? join(homedir(), '.kube', 'config');
}
