/** The oracle of certificates: what is begun, signed, recorded and given out. */
import { X509Certificate } from 'node:crypto';
import { nameOf } from '../ports/function-ports.ts';
import type { FunctionEvents, Invocation } from '../ports/function-ports.ts';
import { insecureSigner, nodeSigner } from '../scenario.ts';
import type { Bench } from './oracle.ts';
import type { MachineOracle } from './machines.ts';
import { types } from '../ports/stored.ts';
import type { Stored } from '../../harness/kubernetes/request-server.ts';
import { keyIdOf } from '../actors/requests.ts';
import type { Process } from '../runtime.ts';

export interface IssuingOracle {
  readonly events: Pick<FunctionEvents, 'opened' | 'takenOver' | 'signs' | 'ledgerChanged'>;
  /** A certificate is given out. */
  issued(invocation: Invocation, pem: string): void;
  /** Something was written on an object. */
  written(before: Stored, after: Stored, writer: Process): void;
}

/** Two clocks that are off by this are not further apart than sign takes for good. */
const mostSkew = 120_000;

export function createIssuingOracle(bench: Bench, machines: MachineOracle): IssuingOracle {
  const { runtime, scenario, ledger, attestations, authorities, truths, broken, label, demandOf } = bench;
  /** Hex of what was signed, by UID. */
  const signed = new Map<string, string>();
  /** What any client was given, by UID. */
  const disclosed = new Map<string, string>();
  const openedKeys = new Map<string, { readonly uid: string; readonly identity: string | undefined }>();
  const issuedBefore = new Map<string, Uint8Array>();
  const expired = new Set<string>();

  /** A certificate is begun, or gone on with: may it be? */
  function mayBegin({ process, object }: Invocation, uid: string): void {
    const truth = truths.get(uid);
    const record = ledger.records.get(uid);
    if (record === undefined) return broken(`${label(uid)}: begun and not on record`);
    if (truth === undefined) return broken(`${nameOf(object)}: begun, and the API server never had such a request`);
    if (record.requestDigest !== truth.digest)
      return broken(`${truth.what}: begun with other content than the request's`);
    if (!bench.requests().approvedEver(uid)) return broken(`${truth.what}: begun without an approval`);
    const lock = bench.locks.against(process, truth, record.identity);
    if (lock !== undefined) return broken(`${truth.what}: begun, and ${lock} was locked before the call`);
    if (!truth.sound) return broken(`${truth.what}: begun, and it is nothing that its signer signs`);
    const ca = scenario.at(process.startedAt).cas.get(truth.signerName) ?? '';
    if (record.caKeyId !== keyIdOf(ca))
      return broken(`${truth.what}: begun or gone on with under a CA that its profile does not name: that is ${ca}`);
    if (demandOf(process, truth)?.mode !== 'enforce') return;
    if (!truth.genuine) return broken(`${truth.what}: begun, and no machine of that name asked for it`);
    const verdict = attestations.verdicts.get(uid);
    if (verdict?.decision !== 'approve' || verdict.requestDigest !== truth.digest)
      return broken(`${truth.what}: begun without a verdict that approves it`);
    const { identity } = verdict;
    // Begun when no proof was demanded, it names no machine. It may continue for a machine that has proved itself.
    if (record.identity !== identity && (record.attempt === 1 || record.identity !== undefined))
      return broken(`${truth.what}: begun for another machine than the verdict's`);
    const ended = machines.endedAt(identity ?? '', verdict.registeredAt);
    if (truth.signerName === insecureSigner && ended === undefined)
      if (machines.keyOf(identity ?? '') !== truth.spkiSha256)
        return broken(`${truth.what}: begun for another than came first`);
    if (ended !== undefined && ended < process.startedAt)
      broken(`${truth.what}: begun though ${identity ?? ''} was retired or reset before the call`);
  }

  function freshKeys(uid: string): void {
    const truth = truths.get(uid);
    if (truth?.signerName !== nodeSigner || !scenario.freshKeys) return;
    const identity = ledger.records.get(uid)?.identity;
    const first = openedKeys.get(truth.spkiSha256);
    if (first === undefined) openedKeys.set(truth.spkiSha256, { uid, identity });
    else if (first.uid !== uid && truths.get(first.uid)?.requestSha256 !== truth.requestSha256)
      if (identity === undefined || first.identity !== identity)
        broken(`${truth.what}: its key was certified before, for ${label(first.uid)}`);
  }

  /** Nothing that was issued ever changes, and it is by the CA that is on record. */
  function ledgerChanged({ process }: Invocation): void {
    for (const [uid, certificate] of issuedBefore) {
      const now = ledger.records.get(uid);
      if (now?.state !== 'issued' || now.certificate === undefined || !same(now.certificate, certificate))
        return broken(`${label(uid)}: its record was issued, and is another now`);
    }
    for (const [uid, { certificate, caKeyId, state }] of ledger.records) {
      if (state === 'expired' && !expired.has(uid)) {
        expired.add(uid);
        const ca = scenario.at(process.startedAt).cas.get(truths.get(uid)?.signerName ?? '') ?? '';
        if (caKeyId === keyIdOf(ca) && runtime.rates.skew <= mostSkew)
          return broken(`${process.name} gives ${label(uid)} up, and neither its CA nor its time is over`);
      }
      if (certificate === undefined || issuedBefore.has(uid)) continue;
      issuedBefore.set(uid, certificate);
      const authority = [...authorities.values()].find(({ keyId }) => keyId === caKeyId);
      const read = new X509Certificate(certificate);
      if (authority === undefined || !read.verify(authority.publicKey))
        return broken(`${label(uid)}: its certificate is not by the CA that is on record`);
    }
  }

  return {
    events: {
      opened(invocation, uid, written) {
        if (!written) return;
        mayBegin(invocation, uid);
        freshKeys(uid);
      },
      takenOver(invocation, uid, written) {
        if (written) mayBegin(invocation, uid);
      },
      signs({ object }, tbs, keyId) {
        const { uid } = object['metadata'] as { readonly uid: string };
        const record = ledger.records.get(uid);
        const hex = Buffer.from(tbs).toString('hex');
        if (record === undefined || !same(record.tbs, tbs)) broken(`${label(uid)}: signed, and not what is on record`);
        else if (record.caKeyId !== keyId) broken(`${label(uid)}: signed with the ${keyId}, and begun with another`);
        if ((signed.get(uid) ?? hex) !== hex)
          broken(`${label(uid)}: two certificates of different content were signed`);
        signed.set(uid, hex);
      },
      ledgerChanged,
    },
    issued({ process, object }, pem) {
      const { uid } = object['metadata'] as { readonly uid: string };
      const record = ledger.records.get(uid);
      const certificate = new X509Certificate(pem);
      if (record?.certificate === undefined || !same(record.certificate, certificate.raw))
        return broken(`${process.name} gives out a certificate for ${label(uid)} that is not the one on record`);
      const truth = truths.get(uid);
      const lock = truth === undefined ? undefined : bench.locks.against(process, truth, record.identity);
      if (lock !== undefined)
        return broken(
          `${process.name} gives out a certificate for ${label(uid)}, and ${lock} was locked before the call`,
        );
      const before = disclosed.get(uid) ?? pem;
      disclosed.set(uid, before);
      if (before !== pem) return broken(`${label(uid)}: two certificates were given out`);
      const asked = (object['spec'] as { readonly request: string }).request;
      const created = bench.requests().history.find((change) => change.object.metadata.uid === uid)?.object;
      if (created?.spec['request'] !== asked)
        broken(`${process.name} gives the certificate of ${label(uid)} to another request`);
    },
    written(before, after, writer) {
      const { uid, name } = after.metadata;
      const encoded = after.status['certificate'];
      if (encoded === before.status['certificate'] || typeof encoded !== 'string') return;
      runtime.count('step: relay: a certificate');
      if (!types(after).includes('Approved') || types(after).includes('Denied') || types(after).includes('Failed'))
        return broken(
          `${writer.name} writes a certificate on ${name}, which is ${types(after).join('+') || 'pending'}`,
        );
      const recorded = ledger.records.get(uid)?.certificate;
      const written = new X509Certificate(Buffer.from(encoded, 'base64').toString());
      if (recorded === undefined || !same(recorded, written.raw))
        broken(`${writer.name} writes a certificate on ${name} that is not the one on record for it`);
    },
  };
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
