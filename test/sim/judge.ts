/**
 * What must be true after every step, whatever happened: told by somebody who sees everything at once, the requests as
 * they were meant included. Nothing here is asked of the parts that are judged.
 */
import { X509Certificate } from 'node:crypto';
import { interpretAttest, interpretSign } from '../../adapters/signer-answers.ts';
import type { RawAnswer } from '../../adapters/signer-answers.ts';
import type { Claim, IdentityRecord } from '../../core/attestation-store.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import type { SimulatedAttestations } from './attestations.ts';
import { nameOf } from './functions.ts';
import type { FunctionEvents, Invocation } from './functions.ts';
import type { SimulatedLedger } from './ledger.ts';
import { types } from './request-api.ts';
import type { RequestEvents, SimulatedRequests, Stored } from './request-api.ts';
import type { Process, Stage } from './stage.ts';

/** What a request really is, as whoever made it knows. */
export interface Truth {
  readonly uid: string;
  readonly what: string;
  /** contracts.md, Request digest, of the object in the API server. */
  readonly digest: string;
  readonly spkiSha256: string;
  /** Its profile demands proof of the machine. */
  readonly attested: boolean;
  /** Made by the machine that it names, with that machine's own proof and under a name that is its. */
  readonly genuine: boolean;
  /** With the credentials of the node itself. */
  readonly byNode: boolean;
  /** Nothing speaks against it: approved, it ends in a certificate. */
  readonly plain: boolean;
}

export interface Judged {
  readonly stage: Stage;
  readonly cluster: ClusterConfiguration;
  readonly ledger: SimulatedLedger;
  readonly attestations: SimulatedAttestations;
  readonly truths: ReadonlyMap<string, Truth>;
  readonly requests: () => SimulatedRequests;
  /** Until when that machine ran, as its platform knows; undefined = it runs. */
  readonly goneAt: (identity: string) => number | undefined;
}

export interface Judge extends FunctionEvents, RequestEvents {
  /** After anything happened to records of machines. */
  registered(): void;
  /** When everything should have come to its end: what has not. */
  unfinished(approver: boolean): readonly string[];
}

/** Two clocks that are off by this are not further apart than sign takes for good. */
const mostSkew = 120_000;

export function createJudge(judged: Judged): Judge {
  const { stage, ledger, attestations, truths } = judged;
  /** Hex of what was signed, by UID. */
  const signed = new Map<string, string>();
  /** What anybody was given, by UID. */
  const disclosed = new Map<string, string>();
  const refusedOnce = new Set<string>();
  const openedKeys = new Map<string, { readonly uid: string; readonly identity: string | undefined }>();
  const issuedBefore = new Map<string, Uint8Array>();
  /** When a registration ended: by identity and when it began. */
  const endings = new Map<string, number>();
  let active = new Map<string, IdentityRecord>();
  /** The client key of each machine, as last let in. */
  const keysBefore = new Map<string, string>();

  const broken = (what: string): void => stage.fail(what);
  const label = (uid: string): string => truths.get(uid)?.what ?? uid.slice(0, 8);

  /** A certificate is begun, or gone on with: may it be? */
  function mayBegin({ process, object }: Invocation, uid: string): void {
    const truth = truths.get(uid);
    const record = ledger.records.get(uid);
    if (record === undefined) return broken(`${label(uid)}: begun and not on record`);
    if (truth === undefined) return broken(`${nameOf(object)}: begun, and the API server never had such a request`);
    if (record.requestDigest !== truth.digest)
      return broken(`${truth.what}: begun with other content than the request's`);
    if (!judged.requests().approvedEver(uid)) return broken(`${truth.what}: begun, and nobody approved it`);
    if (!truth.attested) return;
    if (!truth.genuine) return broken(`${truth.what}: begun, and no machine of that name asked for it`);
    const verdict = attestations.verdicts.get(uid);
    if (verdict?.decision !== 'approve' || verdict.requestDigest !== truth.digest)
      return broken(`${truth.what}: begun without a verdict that approves it`);
    if (record.identity === undefined || record.identity !== verdict.identity)
      return broken(`${truth.what}: begun for another machine than the verdict's`);
    const ended = endings.get(`${record.identity} ${verdict.registeredAt}`);
    if (ended !== undefined && ended < process.startedAt)
      broken(`${truth.what}: begun though ${record.identity} was revoked, retired or reset before the call`);
  }

  function freshKeys(uid: string): void {
    const truth = truths.get(uid);
    const signerName = attestations.verdicts.get(uid)?.signerName;
    if (truth === undefined || judged.cluster.profiles.get(signerName ?? '')?.freshKeys !== true) return;
    const identity = ledger.records.get(uid)?.identity;
    const first = openedKeys.get(truth.spkiSha256);
    if (first === undefined) openedKeys.set(truth.spkiSha256, { uid, identity });
    else if (first.uid !== uid && first.identity !== identity)
      broken(`${truth.what}: its key was certified before, for ${label(first.uid)}`);
  }

  /** Nothing that was issued ever changes. */
  function checkLedger(): void {
    for (const [uid, certificate] of issuedBefore) {
      const now = ledger.records.get(uid);
      if (now?.state !== 'issued' || now.certificate === undefined || !same(now.certificate, certificate))
        return broken(`${label(uid)}: its record was issued, and is another now`);
    }
    for (const [uid, { certificate }] of ledger.records)
      if (certificate !== undefined && !issuedBefore.has(uid)) issuedBefore.set(uid, certificate);
  }

  function checkIssued({ process, object }: Invocation, pem: string): void {
    const { uid } = object['metadata'] as { readonly uid: string };
    const record = ledger.records.get(uid);
    const certificate = new X509Certificate(pem);
    if (record?.certificate === undefined || !same(record.certificate, certificate.raw))
      return broken(`${process.name} gives out a certificate for ${label(uid)} that is not the one on record`);
    const before = disclosed.get(uid) ?? pem;
    disclosed.set(uid, before);
    if (before !== pem) return broken(`${label(uid)}: two certificates were given out`);
    const asked = (object['spec'] as { readonly request: string }).request;
    const requests = judged.requests().history.find((change) => change.object.metadata.uid === uid)?.object;
    if (requests?.spec['request'] !== asked)
      broken(`${process.name} gives the certificate of ${label(uid)} to another request`);
  }

  function checkVerdict({ process, object }: Invocation, answer: RawAnswer): void {
    const said = interpretAttest(answer);
    if (said.kind !== 'verdict' || said.verdict.decision !== 'approve') return;
    if (said.verdict.annotations['countersign.dev/identity'] === undefined) return;
    const { uid } = object['metadata'] as { readonly uid: string };
    if (attestations.verdicts.get(uid)?.decision !== 'approve')
      broken(`${process.name} approves ${label(uid)}, and no verdict of that is stored`);
  }

  function registered(): void {
    const now = new Map<string, IdentityRecord>();
    const owners = new Map<string, string>();
    for (const record of attestations.identities.values()) {
      if (record.state !== 'active') continue;
      now.set(`${record.identity} ${record.firstSeen}`, record);
      const other = owners.get(record.nodeName);
      if (other !== undefined) broken(`${record.nodeName} belongs to ${other} and to ${record.identity}`);
      owners.set(record.nodeName, record.identity);
      if (attestations.names.get(record.nodeName) !== record.identity)
        broken(`${record.nodeName} is ${record.identity}'s, and its name another's`);
    }
    for (const key of active.keys()) if (!now.has(key)) endings.set(key, stage.timeline.now());
    active = now;
  }

  function checkCertificate(before: Stored, after: Stored, writer: Process): void {
    const { uid, name } = after.metadata;
    const encoded = after.status['certificate'];
    if (encoded === before.status['certificate'] || typeof encoded !== 'string') return;
    if (!types(after).includes('Approved') || types(after).includes('Denied') || types(after).includes('Failed'))
      return broken(`${writer.name} writes a certificate on ${name}, which is ${types(after).join('+') || 'pending'}`);
    const recorded = ledger.records.get(uid)?.certificate;
    const written = new X509Certificate(Buffer.from(encoded, 'base64').toString());
    if (recorded === undefined || !same(recorded, written.raw))
      broken(`${writer.name} writes a certificate on ${name} that is not the one on record for it`);
  }

  return {
    opened(invocation, uid, written) {
      if (!written) return;
      mayBegin(invocation, uid);
      freshKeys(uid);
    },
    takenOver(invocation, uid, written) {
      if (written) mayBegin(invocation, uid);
    },
    signs({ object }, tbs) {
      const { uid } = object['metadata'] as { readonly uid: string };
      const record = ledger.records.get(uid);
      const hex = Buffer.from(tbs).toString('hex');
      if (record === undefined || !same(record.tbs, tbs)) broken(`${label(uid)}: signed, and not what is on record`);
      if ((signed.get(uid) ?? hex) !== hex) broken(`${label(uid)}: two certificates of different content were signed`);
      signed.set(uid, hex);
    },
    ledgerChanged: checkLedger,
    claimed(_, claim, written) {
      if (!written) return;
      registered();
      checkClaim(claim);
    },
    answers(invocation, answer) {
      if (invocation.part === 'attest') return checkVerdict(invocation, answer);
      const said = interpretSign(answer);
      const { uid } = invocation.object['metadata'] as { readonly uid: string };
      if (said.kind === 'refused') refusedOnce.add(uid);
      if (said.kind === 'issued') checkIssued(invocation, said.certificatePem);
    },
    alarm({ process, object }, error) {
      const text = error instanceof Error ? error.message : JSON.stringify(error);
      broken(`${process.name} raises an alarm about ${nameOf(object)}: ${text}`);
    },
    changed(before, after, writer) {
      const { uid, name } = after.metadata;
      checkCertificate(before, after, writer);
      const fresh = new Set(types(after).filter((type) => !types(before).includes(type)));
      if (fresh.has('Failed') && !refusedOnce.has(uid))
        broken(`${writer.name} ends ${name} as Failed, and nobody refused it`);
      const truth = truths.get(uid);
      if (!fresh.has('Approved') || truth?.attested !== true) return;
      const verdict = attestations.verdicts.get(uid);
      if (verdict?.decision !== 'approve' || verdict.requestDigest !== truth.digest)
        broken(`${writer.name} approves ${name} without a verdict that says so`);
    },
    crime: broken,
    registered,
    unfinished(approver) {
      return judged
        .requests()
        .objects()
        .flatMap((object) => {
          const { name, uid } = object.metadata;
          const has = types(object);
          const issued = object.status['certificate'] !== undefined;
          const truth = truths.get(uid);
          if (has.includes('Denied')) return [];
          if (!has.includes('Approved')) return approver && truth?.attested === true ? [`${name} is pending`] : [];
          if (!issued && !has.includes('Failed')) return [`${name} is approved and unanswered`];
          // Clocks that far apart make a recorded intent look as if it promised too much: begun, and given up.
          const expired = JSON.stringify(object.status).includes('"IntentExpired"');
          if (expired && stage.rates.skew > mostSkew) return [];
          if (!issued && truth?.plain === true) return [`${name} is Failed, and nothing speaks against it`];
          return [];
        });
    },
  };

  /** What one approval wrote: is it what the machines really did? */
  function checkClaim({ verdict, identity, retire }: Claim): void {
    if (verdict.decision !== 'approve' || identity.kind === 'none') return;
    const truth = truths.get(verdict.uid);
    if (truth === undefined || truth.digest !== verdict.requestDigest || !truth.genuine)
      return broken(`${label(verdict.uid)}: let in, and no machine of that name asked for it`);
    const { record } = identity;
    if (retire !== undefined) {
      const gone = judged.goneAt(retire.identity);
      if (gone === undefined || gone > stage.timeline.now())
        broken(`${record.identity} takes ${record.nodeName} from ${retire.identity}, which runs`);
    }
    const replaced = keysBefore.get(record.identity);
    if (identity.kind === 'replace' && replaced !== record.spkiSha256 && !truth.byNode)
      broken(`${truth.what}: its key takes the place of another, and the node itself did not ask`);
    if (record.spkiSha256 !== undefined) keysBefore.set(record.identity, record.spkiSha256);
  }
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
