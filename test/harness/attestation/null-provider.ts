/**
 * The provider that rubber-stamps (Cluster API's proposal, kubelet-authenticator-null): who says it is a machine of the
 * platform is that machine. It exists under test/ only, and no configuration can name it.
 */
import { createHash } from 'node:crypto';
import { evidenceTooOld } from '../../../core/attestation/evidence/evidence.ts';
import type {
  AttestationProvider,
  Device,
  Machine,
  MachineState,
} from '../../../core/attestation/evidence/provider.ts';
import { violation } from '../../../core/outcome/outcome.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Violation } from '../../../core/outcome/outcome.ts';

export interface NullMachine {
  nodeNames: readonly string[];
  addresses?: readonly string[];
  dnsNames?: readonly string[];
  startedAt?: number;
  /** The entry of the operator's list from which its platform knows it. */
  entry?: string;
  state?: Exclude<MachineState['kind'], 'running'>;
  /** Its platform cannot be asked now. */
  down?: Error;
  /** It runs, and would not be let in today. */
  unwanted?: Violation;
  /** Name of the attestation key that its TPM has. */
  akName?: string;
  /** What a platform that mixes them up says of it. */
  identity?: string;
}

export interface NullPlatform {
  readonly provider: AttestationProvider;
  readonly machines: Map<string, NullMachine>;
  /** How often it was asked about a machine. */
  readonly asked: () => number;
  /** What the TPM of that machine says to a challenge; undefined if the challenge is for another key or another TPM. */
  readonly activate: (machine: string, challenge: string) => NullAnswer | undefined;
}

export interface NullOptions {
  readonly name?: string;
  /** The name that its identities begin with, as both providers of EC2 have one. By default its own. */
  readonly platform?: string;
  readonly secure?: boolean;
  readonly allowRestart?: boolean;
  /** Machines must be on the operator's list. */
  readonly listed?: boolean;
  /** A serving certificate may be decided by the last description of its machine. */
  readonly reuses?: boolean;
  /** Machines have TPMs: evidence has their quote, and an attestation key that is new must be activated. */
  readonly tpm?: boolean;
}

/** What a node sends: `{"v":1,"machine":"m1"}`, and `proof` where it is to be spent once. */
export interface NullEvidence {
  readonly machine: string;
  readonly proof?: string;
  readonly expiresAt?: number;
  /** Must be B where it is given. */
  readonly binding?: string;
  readonly device?: NullDevice;
  /** It waited for more than its five minutes. */
  readonly tooOld?: true;
}

/** A quote: what the TPM with this attestation key says of its clock. */
export interface NullDevice {
  readonly akName: string;
  readonly resetCount: number;
  readonly clock: number;
  readonly answer?: NullAnswer;
}

export interface NullAnswer {
  readonly challenge: string;
  readonly secret: string;
}

/** As long as a challenge of the tpm provider. */
const challengeMilliseconds = 120_000;
/** Only a TPM with both keys learns it. */
const secretOf = (challenge: string): string => createHash('sha256').update(`secret of ${challenge}`).digest('hex');

export function createNullPlatform(options: NullOptions = {}): NullPlatform {
  const {
    name = 'null',
    platform = name,
    secure = true,
    allowRestart = false,
    listed = false,
    reuses = false,
    tpm = false,
  } = options;
  const machines = new Map<string, NullMachine>();
  let asked = 0;
  let challenges = 0;

  function describe(id: string): Machine | undefined {
    asked += 1;
    const machine = machines.get(id);
    if (machine?.down !== undefined) throw machine.down;
    if (machine === undefined || machine.state !== undefined) return undefined;
    return {
      identity: machine.identity ?? `${platform}#${id}`,
      providerId: `${platform}:///${id}`,
      nodeNames: machine.nodeNames,
      addresses: machine.addresses ?? [],
      dnsNames: machine.dnsNames ?? [],
      ...(machine.startedAt === undefined ? {} : { startedAt: machine.startedAt }),
      ...(machine.entry === undefined ? {} : { entry: machine.entry }),
    };
  }

  /** Whether the evidence answers a challenge for this machine and this attestation key, in time. */
  function isActivated(id: string, { akName, answer }: NullDevice, now: number): boolean {
    if (answer === undefined) return false;
    const [machine, key, , until] = answer.challenge.split('|');
    return machine === id && key === akName && now < Number(until) && answer.secret === secretOf(answer.challenge);
  }

  function deviceOf(id: string, device: NullDevice, now: number): Device {
    const { akName, resetCount, clock } = device;
    return {
      state: { akName, resetCount, clock },
      activated: isActivated(id, device, now),
      challenge: () => Promise.resolve(`${id}|${akName}|${++challenges}|${now + challengeMilliseconds}`),
    };
  }

  const provider: AttestationProvider = {
    name,
    versions: [`${name}/v2`, `${name}/v1`],
    secure,
    ...(allowRestart ? { restartWindow: 15 * 60_000 } : {}),
    ...(tpm ? { provesHardware: true } : {}),
    ...(reuses ? { reusesDescriptions: true } : {}),
    examine({ data, binding, now }) {
      const evidence = JSON.parse(Buffer.from(data).toString()) as NullEvidence;
      const { machine: id, proof, expiresAt, binding: sent, device } = evidence;
      const { answer } = device ?? {};
      if (evidence.tooOld === true) return failure([evidenceTooOld]);
      if (sent !== undefined && sent !== binding(''))
        return failure([violation('AttestationInvalid', 'the proof was made for another request')]);
      if (tpm && device === undefined)
        return failure([violation('AttestationInvalid', 'the evidence has no quote of a TPM')]);
      if (device !== undefined && answer !== undefined && !isActivated(id, device, now))
        return failure([violation('AttestationInvalid', 'the challenge is not answered, or too late')]);
      const spent = { expiresAt: expiresAt ?? now + 3_600_000 };
      return success({
        identity: `${platform}#${id}`,
        once: [
          ...(proof === undefined ? [] : [{ kind: 'null', id: proof, ...spent }]),
          ...(answer === undefined ? [] : [{ kind: 'challenge', id: answer.challenge, ...spent }]),
        ],
        machines: listed ? [`${platform}#${id}`] : [],
        async verify() {
          const machine = describe(id);
          if (machine !== undefined)
            return success(device === undefined ? machine : { ...machine, device: deviceOf(id, device, now) });
          return failure([violation('IdentityNotAllowed', 'no such machine runs on this platform')]);
        },
        ...(reuses
          ? {
              confirm: (seen) =>
                Promise.resolve(success(device === undefined ? seen : { ...seen, device: deviceOf(id, device, now) })),
            }
          : {}),
      });
    },
    async describe(identity) {
      const id = identity.slice(platform.length + 1);
      const machine = describe(id);
      const { unwanted, state } = machines.get(id) ?? {};
      if (machine === undefined) return { kind: state ?? 'unknown' };
      return { kind: 'running', machine, violations: unwanted === undefined ? [] : [unwanted] };
    },
    async *goneMachines() {
      for (const [id, { state, down }] of machines) {
        if (down !== undefined) throw down;
        if (state === 'gone') yield `${platform}#${id}`;
      }
    },
  };
  return {
    provider,
    machines,
    asked: () => asked,
    activate(machine, challenge) {
      const [id, akName] = challenge.split('|');
      const isOwn = id === machine && akName !== undefined && machines.get(machine)?.akName === akName;
      return isOwn ? { challenge, secret: secretOf(challenge) } : undefined;
    },
  };
}
