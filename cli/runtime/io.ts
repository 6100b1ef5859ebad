import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CommandFailure } from './exit.ts';
import type { AccountView } from './account-view.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { Ec2Endpoint, Ec2Fleet } from '../../core/attestation/aws/endpoints.ts';
import type { AttestationAdmin, AttestationStore } from '../../core/ports/attestation-store.ts';
import type { RevocationStore } from '../../core/ports/revocations.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import type { SignatureReads } from '../../core/ports/signature-log.ts';
import type { CertificateReads } from '../../core/ports/certificate-reads.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { SignEvent } from '../../core/inventory/reconcile.ts';

/** Which cluster a command works on: one of the dev server, or a deployed one with what flags name of it. */
type ClusterPlace<Named = object> =
  | { readonly kind: 'embedded'; readonly folder: string }
  | ({ readonly kind: 'deployed'; readonly cluster: string; readonly region: string | undefined } & Named);

/** `table`: that of the attestation records, if it is not the one that the stack's outputs name. */
export type RegisterPlace = ClusterPlace<{ readonly table: string | undefined }>;
/** `function`: the ca function, if it does not have the name that the deployment gives it. */
export type RevocationsPlace = ClusterPlace<{ readonly function: string | undefined }>;
export type TracePlace = ClusterPlace;

export interface StackPlace {
  readonly cluster: string;
  /** Default: as for the aws command line. */
  readonly region: string | undefined;
}

export interface HealthCall {
  /** `…/v1/clusters/<name>`. */
  readonly url: string;
  /** For a host whose name does not contain it. */
  readonly region: string | undefined;
  /** `own`: signed with the credentials of the operator; `role`: with those of a role that they assume. */
  readonly login:
    | { readonly kind: 'anonymous' | 'own' }
    | { readonly kind: 'tokenFile'; readonly path: string }
    | { readonly kind: 'role'; readonly arn: string };
}

export interface HealthAnswer {
  readonly status: number;
  readonly body: string;
  readonly milliseconds: number;
  /** `x-countersign-outcome`; empty if the front door answered itself. */
  readonly outcome: string;
}

export interface TablePlace {
  readonly table: string;
  readonly region: string | undefined;
}

export type SeenTable =
  | { readonly exists: false }
  | {
      readonly exists: true;
      readonly status: string;
      readonly deletionProtection: boolean;
      /** Or why it could not be read. */
      readonly pointInTimeRecovery: boolean | CommandFailure;
    };

export interface OpenRegister {
  readonly register: AttestationAdmin;
  readonly store: Pick<AttestationStore, 'findIdentity' | 'findNode' | 'findLock' | 'findMachine'>;
  /** The author of changes, for the audit items: an ARN, or a user name of this machine. */
  by(): Promise<string>;
  close(): void;
}

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

/** What is known about requests and their certificates. Each call throws CommandFailure. */
export interface OpenTrace {
  findRecord(uid: string): Promise<IssuingRecord | undefined>;
  /** The UID of the request whose certificate has this serial number: lower-case hex. */
  findSerial(serial: string): Promise<string | undefined>;
  listByExpiry: CertificateReads['listByExpiry'];
  findRevocation: RevocationStore['find'];
  listRevocations: RevocationStore['list'];
  /** Empty for a CA in a folder of this machine: its key is not in KMS. */
  listSignatures: SignatureReads['list'];
  findVerdict: AttestationStore['findVerdict'];
  listAudit: AttestationAdmin['listAudit'];
  /** The output of the cluster's stack with this name; undefined if the stack has no such output. */
  output(name: string): Promise<string | undefined>;
  /** Undefined if the cluster has no such function, or its log cannot be searched. */
  searchLog(search: LogSearch): Promise<LogFindings | undefined>;
  close(): void;
}

/** `to` is in the search. */
export interface TrailSearch {
  readonly region: string | undefined;
  readonly from: Instant;
  readonly to: Instant;
}

/** The certificates of a cluster and its revocations. */
export interface OpenRevocations {
  readonly reads: CertificateReads;
  readonly revocations: RevocationStore;
  readonly register: OpenRegister;
  /** The keys of the cluster's CAs: `Signer.keyId`. */
  caKeys(): Promise<readonly string[]>;
  /** Issues the CRLs that are due; the serial numbers of the request that they have. */
  issueCrls(serials: readonly string[]): Promise<readonly IssuedCrl[]>;
  close(): void;
}

export interface IssuedCrl {
  readonly name: string;
  /** `Signer.keyId` of its CA. */
  readonly keyId: string;
  /** False if the certificate of the CA does not permit CRLs: the list is kept for the relays, and there is no CRL. */
  readonly signed: boolean;
  readonly number: number;
  readonly nextUpdate: Instant;
  readonly entries: number;
  readonly serials: readonly string[];
}

export interface FunctionCall {
  readonly functionName: string;
  /** Default: as for the aws command line (AWS_REGION, the profile). */
  readonly region?: string | undefined;
  readonly request: object;
}

/** A key of KMS that has its material from outside. Each call throws CommandFailure. */
export interface ImportableKey {
  /** In the words of KMS. */
  describe(): Promise<{ readonly origin: string; readonly state: string; readonly keySpec: string }>;
  /** DER SubjectPublicKeyInfo. */
  publicKey(): Promise<Uint8Array>;
  /** `privateKey`: DER PKCS #8. It leaves this process only wrapped under a key of KMS. */
  importMaterial(privateKey: Uint8Array, randomBytes: (count: number) => Uint8Array): Promise<void>;
  close(): void;
}

/** What `countersign dev` serves. */
export interface DevSettings {
  /** On 127.0.0.1; 0: a free one. */
  readonly port: number;
  readonly clusters: readonly ClusterConfiguration[];
  /** The folder of ledgers and CAs; without it they are in memory. */
  readonly dataFolder?: string;
  readonly relay?: DevRelay;
}

/** A relay for one of the clusters, with the rights of the kubeconfig. `stand-in`: of a stand-in of the API, which writes the file. */
export interface DevRelay {
  readonly api: 'stand-in' | 'cluster';
  readonly cluster: ClusterConfiguration;
  readonly kubeconfigFile: string;
  /** Of the kubeconfig; default: its current context. */
  readonly context?: string;
}

/** What runs. `commit`: the one that the package was built from; absent in a checkout. `platform`: `linux-x64`. */
export interface RunningProgram {
  readonly commit?: string;
  readonly node: string;
  readonly platform: string;
}

/** Everything outside the program that commands use: `processIo` (world.ts), or the Io of a test. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** A line of standard output for programs: fields with tabs between them. */
  outFields(fields: readonly string[]): void;
  /** Whether standard output is a terminal of someone who wants colours. */
  readonly colours: boolean;
  readonly program: RunningProgram;
  readonly environment: Readonly<Record<string, string | undefined>>;
  now(): Instant;
  /** Milliseconds. */
  pause(milliseconds: number): Promise<void>;
  /** From a cryptographically secure source. */
  randomBytes(count: number): Uint8Array;
  /** The operating system's name of the user who runs the command. */
  userName(): string;
  fileExists(path: string): boolean;
  /** Asks the user at the terminal, and gives the line that they type. Undefined without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
  /** Writes a file that does not exist yet, with the folders above it. Throws CommandFailure. */
  writeNew(path: string, text: string): Promise<void>;
  /** `-` is standard input. Rejects with Node's error if the file cannot be read, with code EFBIG if it is larger than `maxInputBytes`. */
  read(path: string): Promise<Uint8Array>;
  /** The lines of a file of any size, without line breaks. `-` is standard input. Rejects as `read` does; EFBIG: a line is too long. */
  lines(path: string): AsyncIterable<string>;
  /** The paths of all files in a folder and the folders in it, sorted. Rejects with Node's error. */
  files(folder: string): Promise<readonly string[]>;
  /** The signatures of KMS in CloudTrail's event history. Throws CommandFailure. */
  lookUpSignatures(search: TrailSearch): AsyncIterable<SignEvent>;
  /** The result of a Lambda function. Throws CommandFailure if the call is not possible or the function fails. */
  callFunction(call: FunctionCall): Promise<unknown>;
  /** `keyArn` names the Region. */
  connectKey(keyArn: string): Promise<ImportableKey>;
  /** The attestation records of a cluster. Throws CommandFailure if they do not exist. */
  openRegister(place: RegisterPlace): Promise<OpenRegister>;
  /** The records and logs about requests. */
  openTrace(place: TracePlace): Promise<OpenTrace>;
  openRevocations(place: RevocationsPlace): Promise<OpenRevocations>;
  /** GET …/healthz. Throws CommandFailure: `configuration` if there are no credentials, `temporary` without an answer. */
  readHealth(call: HealthCall): Promise<HealthAnswer>;
  /** Throws CommandFailure if DynamoDB does not tell. */
  lookAtTable(place: TablePlace): Promise<SeenTable>;
  /** The outputs of a cluster's stack. Throws CommandFailure if the stack does not exist, or the login may not read it. */
  stackOutputs(place: StackPlace): Promise<Readonly<Record<string, string>>>;
  /** EC2, with the operator's AWS login. */
  connectEc2(): Promise<Ec2Fleet & Ec2Endpoint>;
  /** The account of the operator's AWS login. `region`: default: as for the aws command line. */
  connectAccount(region: string | undefined): Promise<AccountView>;
  /** Serves the signing side on loopback until a signal stops it. Throws CommandFailure if it cannot start. */
  serveDev(settings: DevSettings): Promise<void>;
}

/** The API server accepts objects of up to 3 MiB. The bound is for devices and pipes, which may never end. */
export const maxInputBytes = 8 * 1_048_576;

/** The same order as kubectl: the flag, then the first file of KUBECONFIG, then ~/.kube/config. */
export function kubeconfigPath(flag: string | undefined, { environment }: Io): string {
  const fromEnvironment = environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  return flag ?? fromEnvironment ?? join(homedir(), '.kube', 'config');
}
