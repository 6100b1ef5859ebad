/** The stores as one call of a function sees them: each call of theirs can fail, and the oracle hears of each. */
import type { WholeAnswer } from '../../../adapters/http/exchange.ts';
import type { AttestationStore, IdentityRecord } from '../../../core/ports/attestation-store.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { CertificateLedger, FreshKey, Intent, OpenResult } from '../../../core/ports/certificate-ledger.ts';
import { call } from '../call.ts';
import type { Process, Runtime } from '../runtime.ts';

export type Part = 'sign' | 'attest';

/** One call of a function, for the oracle. */
export interface Invocation {
  readonly part: Part;
  readonly process: Process;
  /** The request it is about. */
  readonly object: JsonObject;
}

/** Called when something took effect, answers heard or not. */
export interface FunctionEvents {
  opened(invocation: Invocation, uid: string, written: boolean): void;
  takenOver(invocation: Invocation, uid: string, written: boolean): void;
  signs(invocation: Invocation, tbs: Uint8Array, keyId: string): void;
  ledgerChanged(invocation: Invocation): void;
  claimed(invocation: Invocation, claim: Parameters<AttestationStore['claim']>[0], written: boolean): void;
  observed(invocation: Invocation, record: IdentityRecord): void;
  retired(invocation: Invocation, record: IdentityRecord, nameFreeAt: Instant): void;
  answers(invocation: Invocation, answer: WholeAnswer): void;
  alarm(invocation: Invocation, error: unknown): void;
}

/** The ledger as one call of a function has it. */
export function ledgerPort(
  runtime: Runtime,
  ledger: CertificateLedger,
  invocation: Invocation,
  events: FunctionEvents,
): CertificateLedger {
  const ask = <T>(method: string, act: () => Promise<T>, done?: (answer: T) => void): Promise<T> =>
    call(runtime, invocation.process, {
      port: 'ledger',
      method,
      about: nameOf(invocation.object),
      act,
      told: outcomeOf,
      done: (answer) => {
        if ((answer as { kind?: unknown } | undefined)?.kind !== undefined)
          runtime.count(`step: ledger.${method}: ${outcomeOf(answer)}`);
        done?.(answer);
        events.ledgerChanged(invocation);
      },
    });
  const open = (intent: Intent, freshKey?: FreshKey): Promise<OpenResult> =>
    ask(
      'open',
      () => ledger.open(intent, freshKey),
      ({ kind }) => events.opened(invocation, intent.uid, kind === 'written'),
    );
  return {
    find: (uid) => ask('find', () => ledger.find(uid)),
    open: open as CertificateLedger['open'],
    takeOver: (uid, ...more) =>
      ask(
        'takeOver',
        () => ledger.takeOver(uid, ...more),
        ({ kind }) => events.takenOver(invocation, uid, kind === 'written'),
      ),
    release: (...asked) => ask('release', () => ledger.release(...asked)),
    complete: (...asked) => ask('complete', () => ledger.complete(...asked)),
    expire: (...asked) => ask('expire', () => ledger.expire(...asked)),
  };
}

/** Likewise of what is known of machines. */
export function storePort(
  runtime: Runtime,
  store: AttestationStore,
  invocation: Invocation,
  events: FunctionEvents,
): AttestationStore {
  const ask = <T>(method: string, about: string, act: () => Promise<T>, done?: (answer: T) => void): Promise<T> =>
    call(runtime, invocation.process, {
      port: 'attestations',
      method,
      about,
      act,
      told: outcomeOf,
      ...(done === undefined ? {} : { done }),
    });
  const about = nameOf(invocation.object);
  return {
    findVerdict: (...asked) => ask('findVerdict', about, () => store.findVerdict(...asked)),
    findIdentity: (...asked) => ask('findIdentity', asked[0], () => store.findIdentity(...asked)),
    findNode: (...asked) => ask('findNode', asked[0], () => store.findNode(...asked)),
    recall: (...asked) => ask('recall', about, () => store.recall(...asked)),
    observe: (record) =>
      ask(
        'observe',
        record.identity,
        () => store.observe(record),
        (written) => {
          runtime.count(`step: observe: ${written ? 'written' : 'changed'}`);
          if (written) events.observed(invocation, record);
        },
      ),
    retire: (record, retirement) =>
      ask(
        'retire',
        record.identity,
        () => store.retire(record, retirement),
        ({ kind }) => {
          runtime.count(`step: retire: ${kind}`);
          if (kind === 'written') events.retired(invocation, record, retirement.nameFreeAt);
        },
      ),
    countRefusal: (...asked) => ask('countRefusal', about, () => store.countRefusal(...asked)),
    // Keys differ from run to run, and traces must not.
    findLock: (subject) =>
      ask('findLock', subject.startsWith('key#') ? 'the key' : subject, () => store.findLock(subject)),
    lookup: (...asked) => ask('lookup', about, () => store.lookup(...asked)),
    findMachine: (...asked) => ask('findMachine', asked[0], () => store.findMachine(...asked)),
    claim: (claim, now) =>
      ask(
        'claim',
        `${about}: ${claim.verdict.decision} ${claim.verdict.violations?.[0].code ?? claim.verdict.identity ?? ''}`,
        () => store.claim(claim, now),
        (write) => {
          if (write.kind !== 'written') runtime.count(`step: claim: ${outcomeOf(write)}`);
          events.claimed(invocation, claim, write.kind === 'written');
        },
      ),
  };
}

function outcomeOf(answer: unknown): string {
  if (answer === undefined) return 'nothing';
  const { kind, state, decision } = answer as Readonly<Record<string, unknown>>;
  if (kind === 'written') return kind;
  if (typeof kind === 'string') return `not written${kind === 'found' ? '' : `: ${kind}`}`;
  return [state, decision].find((word) => typeof word === 'string') ?? 'found';
}

/** Of an object: what people call it. */
export function nameOf(object: JsonObject): string {
  const { name, uid } = object['metadata'] as { readonly name: string; readonly uid: string };
  return `${name}/${uid.slice(0, 4)}`;
}
