import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AccountView } from './account-view.ts';
import type { Ec2Fleet } from '../../core/attestation/aws/fleet.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { Ec2Endpoint } from '../../core/attestation/aws/endpoints.ts';
import type { AttestationAdmin, AttestationStore } from '../../core/ports/attestation-store.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';

export type RegisterPlace =
  | { readonly kind: 'embedded'; readonly folder: string }
  | {
      readonly kind: 'deployed';
      readonly cluster: string;
      readonly table: string | undefined;
      readonly region: string | undefined;
    };

export interface OpenRegister {
  readonly register: AttestationAdmin;
  readonly store: Pick<AttestationStore, 'findIdentity' | 'findNode' | 'findLock'>;
  /** The author of changes, for the audit items: an ARN, or a user name of this machine. */
  by(): Promise<string>;
  close(): void;
}

/** Where the records of a cluster are, and with a deployed one the logs of its functions. */
export type TracePlace =
  | { readonly kind: 'embedded'; readonly folder: string }
  | { readonly kind: 'deployed'; readonly cluster: string; readonly region: string | undefined };

/** A text in the lines of a function's log between two times. */
export interface LogSearch {
  readonly of: 'sign' | 'attest';
  /** CloudWatch Logs' syntax of filter patterns. */
  readonly pattern: string;
  readonly from: Instant;
  readonly to: Instant;
}

export interface LogFindings {
  readonly lines: readonly { readonly at: Instant; readonly text: string }[];
  /** Why the search ended before `to`; absent if it did not. */
  readonly endedEarly?: string;
}

/** What is known about one request. Each call throws CommandFailure. */
export interface OpenTrace {
  findRecord(uid: string): Promise<IssuingRecord | undefined>;
  /** The UID of the request whose certificate has this serial number: lower-case hex. */
  findSerial(serial: string): Promise<string | undefined>;
  findVerdict: AttestationStore['findVerdict'];
  listAudit: AttestationAdmin['listAudit'];
  /** Undefined if the cluster has no such function, or its log cannot be searched. */
  searchLog(search: LogSearch): Promise<LogFindings | undefined>;
  close(): void;
}

export interface FunctionCall {
  readonly functionName: string;
  /** Default: as for the aws command line (AWS_REGION, the profile). */
  readonly region?: string | undefined;
  readonly request: object;
}

/** Everything outside the program that commands use: `processIo` (world.ts), or the Io of a test. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  now(): Instant;
  /** From a cryptographically secure source. */
  randomBytes(count: number): Uint8Array;
  /** The operating system's name of the user who runs the command. */
  userName(): string;
  fileExists(path: string): boolean;
  /** `-` is standard input. Rejects with Node's error if the file cannot be read, with code EFBIG if it is larger than `maxInputBytes`. */
  read(path: string): Promise<Uint8Array>;
  /** The result of a Lambda function. Throws CommandFailure if the call is not possible or the function fails. */
  callFunction(call: FunctionCall): Promise<unknown>;
  /** The attestation records of a cluster. Throws CommandFailure if they do not exist. */
  openRegister(place: RegisterPlace): Promise<OpenRegister>;
  /** The records and logs about requests. */
  openTrace(place: TracePlace): Promise<OpenTrace>;
  /** EC2, with the operator's AWS login. */
  connectEc2(): Promise<Ec2Fleet & Ec2Endpoint>;
  /** The account of the operator's AWS login. `region`: default: as for the aws command line. */
  connectAccount(region: string | undefined): Promise<AccountView>;
}

/** The API server accepts objects of up to 3 MiB. The bound is for devices and pipes, which may never end. */
export const maxInputBytes = 8 * 1_048_576;

/** The same order as kubectl: the flag, then the first file of KUBECONFIG, then ~/.kube/config. */
export function kubeconfigPath(flag: string | undefined, { environment }: Io): string {
  const fromEnvironment = environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  return flag ?? fromEnvironment ?? join(homedir(), '.kube', 'config');
}
