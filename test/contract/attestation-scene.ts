/** What the cases of the attestation store are told with: machines, names, proofs and addresses that no other case uses. */
import { randomBytes, randomUUID } from 'node:crypto';
import type {
  AttestationAdmin,
  AttestationStore,
  AuditItem,
  Claim,
  IdentityRecord,
  SingleUseKey,
  LookupResult,
  Verdict,
} from '../../core/ports/attestation-store.ts';
import { ulid } from '../../core/attestation/records/ulid.ts';

export interface StoreUnderTest {
  readonly store: AttestationStore;
  readonly register: AttestationAdmin;
  /** Another handle on the same store, as a second process or a restarted one would open it. */
  readonly reopen: () => Promise<Pick<StoreUnderTest, 'store' | 'register'>>;
  /** Another cluster's store. */
  readonly other: AttestationStore;
  /** Gives a node name to another machine in the table itself, as a principal that may write it could. */
  readonly giveName?: (nodeName: string, identity: string) => Promise<void>;
  /** Writes an entry of the list of machines as an earlier version of the store did: these fields and no others. */
  readonly putEntry?: (fields: { readonly name: string }) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** When everything happens, unless a case says otherwise. */
export const now = 1_800_000_000_000;
export const hour = 3_600_000;

export interface SceneState {
  readonly identities: readonly (IdentityRecord | undefined)[];
  readonly nodes: readonly (IdentityRecord | undefined)[];
  readonly verdicts: readonly Verdict[];
  /** Of the proofs and addresses. */
  readonly seen: LookupResult;
}

/** Two of each; what a case does not name stays as it is. */
export interface Scene extends StoreUnderTest {
  readonly a: string;
  readonly b: string;
  readonly n: string;
  readonly m: string;
  readonly p: SingleUseKey;
  readonly q: SingleUseKey;
  readonly x: string;
  readonly y: string;
  /** Everything there is of this scene, expired things left out. */
  state(at?: number): Promise<SceneState>;
  record(change?: Partial<IdentityRecord>): IdentityRecord;
  verdict(change?: Partial<Verdict>): Verdict;
  audit(change?: Partial<AuditItem>): AuditItem;
  /** The audit items of this scene, as listed. */
  audited(): Promise<readonly AuditItem[]>;
  /** The first use of `a` under `n`, with a verdict of its own. */
  first(change?: Partial<Claim>, record?: Partial<IdentityRecord>): Claim;
  /** One more use of this record. */
  again(before: IdentityRecord, change?: Partial<Claim>, record?: Partial<IdentityRecord>): Claim;
  /** A claim that must be written; gives its record. */
  done(claim: Claim): Promise<IdentityRecord>;
}

export function sceneOf(made: StoreUnderTest): Scene {
  const { store, register } = made;
  const instance = () => `aws#aws/123456789012/eu-central-1/i-${randomBytes(8).toString('hex')}`;
  const node = () => `ip-${randomUUID()}.eu-central-1.compute.internal`;
  const proof = (): SingleUseKey => ({ kind: 'sts', id: randomBytes(32).toString('hex') });
  const address = () => `fd00::${(randomBytes(6).toString('hex').match(/.{4}/g) ?? []).join(':')}`;
  const reason = `scene ${randomUUID()}`;
  const uids: string[] = [];
  const names = {
    a: instance(),
    b: instance(),
    n: node(),
    m: node(),
    p: proof(),
    q: proof(),
    x: address(),
    y: address(),
  };
  const { a, b, n, m, p, q, x, y } = names;

  const scene: Scene = {
    ...made,
    ...names,
    async state(at = now) {
      const look = { now: at, nodeName: n, once: [p, q], addresses: [x, y], machines: [] };
      const verdicts = await Promise.all(uids.map((uid) => store.findVerdict(uid, at)));
      return {
        identities: [await store.findIdentity(a), await store.findIdentity(b)],
        nodes: [await store.findNode(n), await store.findNode(m)],
        verdicts: verdicts.filter((verdict) => verdict !== undefined),
        seen: await store.lookup(look),
      };
    },
    record: (change = {}) => ({
      identity: a,
      nodeName: n,
      state: 'active',
      spkiSha256: '11'.repeat(32),
      previousSpkis: [],
      providerId: `aws:///eu-central-1a/${a.split('/').at(-1)}`,
      addresses: [],
      firstSeen: now,
      lastSeen: now,
      renewals: 0,
      uses: 1,
      lastUid: 'first',
      rev: 1,
      ...change,
    }),
    verdict(change = {}) {
      const verdict: Verdict = {
        uid: randomUUID(),
        requestDigest: randomBytes(32).toString('hex'),
        signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
        decision: 'approve',
        annotations: {},
        mode: 'enforce',
        decidedAt: now,
        expiresAt: now + 25 * hour,
        ...change,
      };
      uids.push(verdict.uid);
      return verdict;
    },
    audit: (change = {}) => ({
      id: ulid(now, randomBytes(10)),
      at: now,
      by: 'arn:aws:sts::123456789012:assumed-role/operator/eve',
      action: 'reset',
      subject: a,
      reason,
      ...change,
    }),
    async audited() {
      const items = await all(register.listAudit());
      return items.filter((item) => item.reason === reason);
    },
    first: (change = {}, record = {}) => ({
      verdict: scene.verdict({ identity: a }),
      once: [],
      identity: { kind: 'create', record: scene.record(record) },
      newAddresses: record.addresses ?? [],
      audit: [],
      ...change,
    }),
    again: (before, change = {}, record = {}) => ({
      verdict: scene.verdict({ identity: before.identity }),
      once: [],
      identity: {
        kind: 'replace',
        record: {
          ...before,
          addresses: [...before.addresses, ...(change.newAddresses ?? [])],
          lastSeen: before.lastSeen + 1,
          uses: before.uses + 1,
          rev: before.rev + 1,
          ...record,
        },
      },
      newAddresses: [],
      audit: [],
      ...change,
    }),
    async done(claim) {
      const answer = await store.claim(claim, now);
      if (answer.kind !== 'written') throw new Error(`a case could not be prepared: ${answer.kind}`);
      if (claim.identity.kind === 'none') throw new Error('no record was claimed');
      return claim.identity.record;
    },
  };
  return scene;
}

/** A proof as a claim spends it. */
export function spent(
  key: SingleUseKey,
  requestSha256 = 'aa'.repeat(32),
  expiresAt = now + hour,
): Claim['once'][number] {
  return { ...key, requestSha256, expiresAt };
}

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
