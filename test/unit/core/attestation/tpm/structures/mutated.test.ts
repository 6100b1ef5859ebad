/**
 * Structures of a real TPM, evidence and certificates, changed at random: each is refused with a name, or read as a second reader
 * reads it. 100 000 of each kind in the deep tier.
 */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { verifyEkCertificate } from '../../../../../../core/attestation/tpm/ek-certificate.ts';
import { decodeEndorsementKey } from '../../../../../../core/attestation/tpm/endorsement-key.ts';
import { decodeEventLog } from '../../../../../../core/attestation/tpm/event-log.ts';
import { eventName } from '../../../../../../core/attestation/tpm/event-names.ts';
import { readTpmEvidence } from '../../../../../../core/attestation/tpm/evidence.ts';
import { decodeAttest } from '../../../../../../core/attestation/tpm/structures/attest.ts';
import { decodePublicArea, encodePublicArea } from '../../../../../../core/attestation/tpm/structures/public-area.ts';
import { publicKeyOf } from '../../../../../../core/attestation/tpm/structures/public-key.ts';
import { decodeSignature } from '../../../../../../core/attestation/tpm/structures/signature.ts';
import { readAnchors } from '../../../../../../core/x509/chain/verify-chain.ts';
import type { Result } from '../../../../../../core/outcome/result.ts';
import * as world from '../../../../../corpus/attestation/tpm/machine.ts';
import { bytesOf, vectors } from '../../../../../corpus/attestation/tpm/vectors.ts';
import { mulberry32 } from '../../../../../harness/determinism/mulberry32.ts';
import { byTier } from '../../../../../harness/determinism/tier.ts';
import { bootEvents, eventLog, startupLocality } from '../../../../../harness/tpm/event-log.ts';
import { mutate, secondAttest, secondLog, secondSignature } from './mutate.ts';

const runs = byTier({ default: 4_000, deep: 100_000 });
const keys = [...Object.values(vectors.keys), ...Object.values(vectors.quotes)].map((key) => bytesOf(key.public));
const signed = [...Object.values(vectors.quotes), ...Object.values(vectors.certifications)];

/** More than 50 ms twice, for what takes a few microseconds: one pause is the machine's. */
function isSlow(decode: () => unknown): boolean {
  return [1, 2].every(() => {
    const started = performance.now();
    decode();
    return performance.now() - started > 50;
  });
}

/** How many are accepted. `agrees`: whether what was read is what the bytes say. */
function tryAll<T>(
  originals: readonly Buffer[],
  decode: (bytes: Buffer) => Result<T, string>,
  agrees: (value: T, bytes: Buffer) => boolean,
): number {
  const random = mulberry32(0x7092);
  let accepted = 0;
  for (let run = 0; run < runs; run++) {
    const bytes = mutate(originals, random);
    const read = decode(bytes);
    if (isSlow(() => decode(bytes))) expect.fail(`slow: ${bytes.toString('hex')}`);
    if (read.ok) {
      accepted += 1;
      if (!agrees(read.value, bytes)) expect.fail(`read otherwise: ${bytes.toString('hex')}`);
    } else if (!/^(has|names|is|ends|does|lacks|selects|cannot) .{4,120}$/.test(read.problem))
      expect.fail(read.problem);
  }
  return accepted;
}

/** Some changes leave a structure. */
const some = runs / 500;

describe('changed at random', () => {
  test('public areas', () => {
    const accepted = tryAll(keys, decodePublicArea, (area, bytes) => {
      publicKeyOf(area.key);
      return bytes.equals(encodePublicArea(area));
    });
    expect(accepted).toBeGreaterThan(some);
  });

  test('attestations', () => {
    const originals = signed.map(({ attest }) => bytesOf(attest));
    const accepted = tryAll(originals, decodeAttest, (attest, bytes) => isDeepStrictEqual(secondAttest(bytes), attest));
    expect(accepted).toBeGreaterThan(some);
  });

  test('signatures', () => {
    const originals = signed.map(({ signature }) => bytesOf(signature));
    const accepted = tryAll(originals, decodeSignature, (signature, bytes) =>
      isDeepStrictEqual(secondSignature(bytes), signature),
    );
    expect(accepted).toBeGreaterThan(some);
  });

  test('evidence', () => {
    const { challenge, proof } = {
      challenge: Buffer.alloc(23, 9).toString('base64url'),
      proof: world.b64(world.pcrs.get(5)!),
    };
    const events = { 4: world.b64(Buffer.alloc(64, 4)), 7: world.b64(Buffer.alloc(32, 7)) };
    const quoted = { ...(world.good['quote'] as world.Json), events };
    const full = { ...world.good, quote: quoted, activation: { challenge, proof }, nonce: 'n' };
    const originals = [world.good, full].map((data) => Buffer.from(JSON.stringify(data)));
    const accepted = tryAll(originals, readTpmEvidence, (sent, bytes) => {
      const { ek, ak, quote, nonce = '' } = JSON.parse(bytes.toString()) as Readonly<Record<string, never>>;
      expect(ek).toEqual({ [sent.endorsementKey.kind]: world.b64(sent.endorsementKey.der) });
      const { attest, signature, pcrs, events: told } = sent.quote;
      const digests = Object.fromEntries([...told].map(([pcr, of]) => [pcr, world.b64(Buffer.concat(of))]));
      const values = pcrs === undefined ? {} : { pcrs: world.pcrsSent(pcrs as never) };
      expect({ events: {}, ...(quote as unknown as object) }).toEqual({
        attest: world.b64(attest),
        sig: world.b64(signature),
        ...values,
        events: digests,
      });
      return ak === world.b64(sent.attestationKey) && nonce === sent.nonce;
    });
    expect(accepted).toBeGreaterThan(some);
  });

  test('event logs', () => {
    const originals = [
      eventLog([startupLocality(3), ...bootEvents()]),
      eventLog(bootEvents('other'), [0x000b]),
      eventLog([{ pcr: 7, type: 4, data: Buffer.alloc(4) }], [0x0004, 0x000b, 0x000c]),
    ];
    const accepted = tryAll(originals, decodeEventLog, ({ events }, bytes) => {
      for (const event of events) if (!/^[ -~]{1,64}$/.test(eventName(event))) return false;
      return isDeepStrictEqual(secondLog(bytes), events);
    });
    expect(accepted).toBeGreaterThan(some);
  });

  // Where the list of machines is the trust, a certificate only carries its key, and its other parts need not be right.
  test('certificates: OpenSSL reads no other key', () => {
    const decode = (der: Buffer) => decodeEndorsementKey({ kind: 'cert', der });
    let same = 0;
    tryAll([world.certificate], decode, ({ spki }, der) => {
      const theirs = opensslKey(der);
      if (theirs?.equals(spki) === true) same += 1;
      return theirs === undefined || theirs.equals(spki);
    });
    expect(same).toBeGreaterThan(runs / 500);
  });

  test('certificates: none of another maker is verified, and no verification throws', async () => {
    const roots = [{ name: 'roots', certificates: world.policy.roots }];
    const { intermediates } = world.policy;
    const anchors = readAnchors('attestation.tpm', { roots, intermediates });
    const random = mulberry32(0x509);
    const unchanged = decodeEndorsementKey({ kind: 'cert', der: world.certificate });
    const original = unchanged.ok ? unchanged.value.certificate : undefined;
    let read = 0;
    for (let run = 0; run < byTier({ default: 200, deep: 100_000 }); run++) {
      const der = mutate([world.certificate], random);
      const key = decodeEndorsementKey({ kind: 'cert', der });
      if (!key.ok) continue;
      read += 1;
      const verified = await verifyEkCertificate(key.value, anchors, world.now);
      // The encoding of the signature has more than one form. What it signs has one.
      if (verified.ok) expect(key.value.certificate?.facts.tbs).toEqual(original?.facts.tbs);
    }
    expect(read).toBeGreaterThan(20);
  }, 1_200_000);
});

function opensslKey(der: Buffer): Buffer | undefined {
  try {
    return new X509Certificate(der).publicKey.export({ type: 'spki', format: 'der' });
  } catch {
    return undefined;
  }
}
