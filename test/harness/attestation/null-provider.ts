/**
 * The provider that rubber-stamps (Cluster API's proposal, kubelet-authenticator-null): who says it is a machine of the
 * platform is that machine. It exists under test/ only, and no configuration can name it.
 */
import type { AttestationProvider, Machine, MachineState } from '../../../core/attestation/evidence/provider.ts';
import { violation } from '../../../core/outcome/outcome.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Violation } from '../../../core/outcome/outcome.ts';

export interface NullMachine {
  nodeNames: readonly string[];
  addresses?: readonly string[];
  dnsNames?: readonly string[];
  startedAt?: number;
  state?: Exclude<MachineState['kind'], 'running'>;
  /** Its platform cannot be asked now. */
  down?: Error;
  /** It runs, and would not be let in today. */
  unwanted?: Violation;
  /** What a platform that mixes them up says of it. */
  identity?: string;
}

export interface NullPlatform {
  readonly provider: AttestationProvider;
  readonly machines: Map<string, NullMachine>;
  /** How often it was asked about a machine. */
  readonly asked: () => number;
}

export interface NullOptions {
  readonly name?: string;
  readonly secure?: boolean;
  readonly allowRestart?: boolean;
  /** Machines must be on the operator's list. */
  readonly listed?: boolean;
}

/** What a node sends: `{"v":1,"machine":"m1"}`, and `proof` where it is to be spent once. */
export interface NullEvidence {
  readonly machine: string;
  readonly proof?: string;
  readonly expiresAt?: number;
  /** Must be B where it is given. */
  readonly binding?: string;
}

export function createNullPlatform(options: NullOptions = {}): NullPlatform {
  const { name = 'null', secure = true, allowRestart = false, listed = false } = options;
  const machines = new Map<string, NullMachine>();
  let asked = 0;

  function describe(id: string): Machine | undefined {
    asked += 1;
    const machine = machines.get(id);
    if (machine?.down !== undefined) throw machine.down;
    if (machine === undefined || machine.state !== undefined) return undefined;
    return {
      identity: machine.identity ?? `${name}#${id}`,
      providerId: `${name}:///${id}`,
      nodeNames: machine.nodeNames,
      addresses: machine.addresses ?? [],
      dnsNames: machine.dnsNames ?? [],
      ...(machine.startedAt === undefined ? {} : { startedAt: machine.startedAt }),
    };
  }

  const provider: AttestationProvider = {
    name,
    versions: [`${name}/v2`, `${name}/v1`],
    secure,
    ...(allowRestart ? { restartWindow: 15 * 60_000 } : {}),
    examine({ data, binding, now }) {
      const { machine: id, proof, expiresAt, binding: sent } = JSON.parse(Buffer.from(data).toString()) as NullEvidence;
      if (sent !== undefined && sent !== binding(''))
        return failure([violation('AttestationInvalid', 'the proof was made for another request')]);
      return success({
        identity: `${name}#${id}`,
        once: proof === undefined ? [] : [{ kind: 'null', id: proof, expiresAt: expiresAt ?? now + 3_600_000 }],
        machines: listed ? [`${name}#${id}`] : [],
        async verify() {
          const machine = describe(id);
          if (machine !== undefined) return success(machine);
          return failure([violation('IdentityNotAllowed', 'no such machine runs on this platform')]);
        },
      });
    },
    async describe(identity) {
      const id = identity.slice(name.length + 1);
      const machine = describe(id);
      const { unwanted, state } = machines.get(id) ?? {};
      if (machine === undefined) return { kind: state ?? 'unknown' };
      return { kind: 'running', machine, violations: unwanted === undefined ? [] : [unwanted] };
    },
  };
  return { provider, machines, asked: () => asked };
}
