import type { Instant } from '../../core/ports/instant.ts';

/** What `countersign aws preflight` asks AWS. It only reads. Each call rejects with the SDK's error. */
export interface AccountView {
  /** Of all calls, unless a call names another one. Rejects if neither the command nor the login has one. */
  region(): Promise<string>;
  callerArn(): Promise<string>;
  /** The time of AWS, in whole seconds, when `callerArn` was answered last; undefined before that. */
  answeredAt(): Instant | undefined;
  /** Values by name, of those parameters that exist. */
  parameters(names: readonly string[], region?: string): Promise<ReadonlyMap<string, string>>;
  /** Of Lambda, in this account and region. */
  concurrency(): Promise<{ readonly limit: number; readonly unreserved: number }>;
  /** Zero if it reserves nothing or does not exist. */
  reservedBy(functionName: string): Promise<number>;
  /** The applied value, or AWS's default if none is applied. */
  quota(service: string, code: string): Promise<{ readonly name: string; readonly value: number }>;
  /** Its ARN, as IAM has it; undefined if it does not exist. */
  principal(kind: 'role' | 'user', name: string): Promise<string | undefined>;
  /** Undefined if it does not exist. */
  stack(name: string): Promise<{ readonly status: string; readonly tags: ReadonlyMap<string, string> } | undefined>;
  close(): void;
}
