/**
 * Every code there is, with a request that gets it from attest and from sign. The table is complete by its type: a new
 * code without a row does not compile.
 */
import { afterEach, expect, test } from 'vitest';
import type { RefusalCode } from '../../../../core/outcome/outcome.ts';
import type { AttestContext, MachineObject } from '../../../../core/ports/signing-endpoint.ts';
import { maxRequestBytes } from '../../../../core/x509/certificate-request.ts';
import { clusterApi, contextOf, machineObject } from '../../../harness/attestation/machine-objects.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import { approvedOf, createWorld, requestOf, retire, said, servingSigner, signed } from './world.ts';
import type { Asked, World, WorldOptions } from './world.ts';

interface Row {
  readonly asked: Asked;
  readonly options?: WorldOptions;
  /** What happened before. */
  readonly before?: (world: World) => Promise<unknown>;
  /** Codes that only the one or the other gives. */
  readonly only?: 'attest' | 'sign';
  /** What the relay looked up. */
  readonly context?: AttestContext;
}

const m1 = { machine: 'm1' };
const key = newKey('P-256');
const day = 86_400_000;
/** The same bytes each time: an ECDSA signature would differ. */
const slow = requestOf({ evidence: m1, uid: 'slow', key });
const slowText = Buffer.from((slow['spec'] as { request: string }).request, 'base64').toString();

async function register(world: World): Promise<void> {
  expect(said(await world.attest(requestOf({ evidence: m1 })))).toBe('approve');
}

/** With these Machines behind m1. */
function behind(...machines: readonly MachineObject[]): Row {
  return { options: { settings: { clusterApi } }, asked: { evidence: m1 }, context: contextOf(machines) };
}

const rows: Readonly<Record<RefusalCode, Row>> = {
  SignerValidationFailure: { asked: { evidence: m1, sans: { dns: ['node-1'] } } },
  RequestMalformed: { asked: { request: 'no PEM' } },
  // Some bytes fewer than the object's own cap lets through.
  RequestTooLarge: { asked: { request: 'x'.repeat(maxRequestBytes + 1) } },
  SignatureInvalid: {
    asked: {
      evidence: m1,
      spec: {
        subject: { O: ['system:nodes'], CN: 'system:node:node-1' },
        signature: (signature) => Buffer.from(signature).fill(7, 8, 12),
      },
    },
  },
  KeyNotPermitted: { asked: { evidence: m1, key: newKey('P-224') } },
  UsageNotPermitted: {
    asked: { signerName: 'kubernetes.io/legacy-unknown', usages: [], spec: { subject: { CN: 'jane' } } },
  },
  SubjectNotPermitted: {
    asked: { signerName: 'kubernetes.io/legacy-unknown', spec: { subject: [] } },
  },
  SanNotPermitted: {
    asked: {
      signerName: 'kubernetes.io/legacy-unknown',
      spec: { subject: { CN: 'jane' } },
      sans: { raw: [Buffer.from('88012a', 'hex')] },
    },
  },
  NameReserved: {
    asked: { signerName: 'kubernetes.io/legacy-unknown', spec: { subject: { CN: 'a', O: ['system:masters'] } } },
  },
  RequesterNotAllowed: { asked: { evidence: m1, by: { username: 'eve', groups: ['system:authenticated'] } } },
  UidReused: {
    asked: { evidence: m1, uid: 'again', key },
    before: (world) => world.attest(requestOf({ evidence: m1, uid: 'again', key, by: 'node' })),
  },
  IntentExpired: {
    only: 'sign',
    asked: { request: slowText, uid: 'slow' },
    // Begun, and never finished for a day.
    before: async (world) => {
      const ledger = {
        ...world.ledger,
        complete: () => Promise.reject(new Error('down')),
        release: () => Promise.reject(new Error('down')),
      };
      await expect(world.change({ ledger }).issue(approvedOf(slow))).rejects.toThrow('down');
      world.clock.now += 0.9 * day;
    },
  },
  AttestationMissing: { asked: {} },
  AttestationInvalid: { asked: { evidence: { ...m1, binding: 'of another request' } } },
  AttestationVersion: { asked: { evidence: m1, version: 'null/v99' } },
  AttestationChallenge: {
    options: { tpm: true },
    asked: { evidence: { ...m1, device: { akName: 'ak of m1', resetCount: 0, clock: 1 } } },
  },
  IdentityNotAllowed: { asked: { evidence: m1, node: 'node-7' } },
  TofuReuse: { asked: { evidence: m1 }, before: register },
  TofuNodeMismatch: { asked: { evidence: m1, node: 'free-1' }, before: register },
  TofuNodeTaken: { asked: { evidence: { machine: 'm2' } }, before: register },
  Locked: {
    asked: { evidence: m1 },
    before: async (world) => {
      const lock = { id: '1', nodeName: 'node-1', at: 1, by: 'me', reason: 'stolen' };
      await world.register.lock(lock, { ...lock, action: 'lock', subject: 'node-1' });
    },
  },
  Revoked: {
    asked: { evidence: m1, by: 'node' },
    before: async (world) => {
      await register(world);
      await retire(world, 'm1', 'node-1');
    },
  },
  KeyReused: {
    only: 'sign',
    options: { profile: { freshKeys: true } },
    asked: { evidence: m1, key, by: 'node' },
    // Certified, replaced, and brought again.
    before: async (world) => {
      for (const each of [key, newKey('P-256')])
        expect(signed(await world.issue(requestOf({ evidence: m1, key: each, by: 'node', approved: true })))).toBe(
          'issued',
        );
    },
  },
  MachineNotFound: { options: { settings: { clusterApi } }, asked: { evidence: m1 } },
  // Not stored: sign asks attest again, which then knows no Machine.
  MachineNotReady: { only: 'attest', ...behind(machineObject({ bootstrapReady: false })) },
  MachineAmbiguous: behind(machineObject(), machineObject({ name: 'another' })),
  MachineDeleting: behind(machineObject({ deleting: true })),
  MachineOfOtherCluster: behind(machineObject({ clusterName: 'another' })),
  MachineMismatch: behind(machineObject({ providerId: 'null:///m2' })),
  AttestorNotAuthorized: {
    ...behind(),
    context: contextOf(undefined, { deleting: false, authorizedAttestors: ['aws'] }),
  },
  NameNotOwned: { asked: { signerName: servingSigner, by: 'node', sans: { ip: ['10.9.9.9'] } }, before: register },
};

const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

test.each(Object.entries(rows))('%s', async (code, { asked, options, before, only, context }) => {
  const world = await createWorld(options);
  open.push(world);
  world.platform.machines.set('m1', { nodeNames: ['node-1', 'free-1'], addresses: ['10.0.0.1'] });
  world.platform.machines.set('m2', { nodeNames: ['node-1'] });
  await before?.(world);
  const object = requestOf(asked);
  const attested = only === 'sign' ? code : said(await world.attest(object, context));
  const answered = only === 'attest' ? code : signed(await world.issue(approvedOf(object)));
  expect({ attested, answered }).toEqual({ attested: code, answered: code });
});
