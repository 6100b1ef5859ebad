import { createHash, createHmac, randomBytes, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { decodeAttest } from '../../../../core/attestation/tpm/structures/attest.ts';
import { attribute, decodePublicArea } from '../../../../core/attestation/tpm/structures/public-area.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { ChallengeRefusedError, type Challenge } from '../../../../kubelet-authenticator/providers/provider.ts';
import { tpmProvider as attestingProvider } from '../../../../core/attestation/tpm/provider.ts';
import type { TpmAttestation } from '../../../../core/configuration/providers/tpm.ts';
import type { Evidence, Machine } from '../../../../core/attestation/evidence/provider.ts';
import { tpmProvider } from '../../../../kubelet-authenticator/providers/tpm.ts';
import { withTpm } from '../../../../kubelet-authenticator/providers/tpm-tools.ts';
import { endorsementKeyKinds, type EndorsementKeyKind } from '../../../../kubelet-authenticator/settings/settings.ts';
import { printed } from '../../../harness/node/authenticator-output.ts';
import { signers, startAuthenticatorSite, type AuthenticatorSite } from '../../../harness/node/authenticator-site.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import {
  bytes,
  challengeFor,
  checkQuote,
  evidenceOf,
  left,
  nameOf,
  providerOf,
  spkiOf,
  untouched,
  type TpmEvidence,
} from '../../../harness/tpm/tpm-evidence.ts';
import { requireTools } from '../../../tools/tools.ts';

/* The evidence of a TPM, made by tpm2-tools and swtpm. Verified by tpm2-tools and by the provider of attest. */
const { skip } = await requireTools('swtpm');

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder('tpm-node');
});
afterEach(() => folder.remove());

const cacheOf = (name = 'cache') => join(folder.path, name);
const node = (tpm: SoftwareTpm, kind?: EndorsementKeyKind, directory = cacheOf()) => ({ tpm, kind, directory });

describe.skipIf(skip)('a TPM', () => {
  let tpm: SoftwareTpm;
  let stranger: SoftwareTpm;
  beforeAll(async () => {
    tpm = await startSoftwareTpm();
    stranger = await startSoftwareTpm({ name: 'stranger', authority: tpm.authority });
  });
  afterAll(async () => {
    await stranger.stop();
    await tpm.stop();
  });

  describe.each(endorsementKeyKinds)('with an endorsement key %s', (kind) => {
    test('quotes the digest with a restricted key of its own, and keeps nothing', async () => {
      const { digest, evidence } = await evidenceOf(node(tpm, kind));
      expect(Object.keys(evidence)).toEqual(['v', 'ek', 'ak', 'quote', 'nonce']);
      expect([evidence.v, evidence.nonce]).toEqual([1, 'the-nonce']);
      const certificate = kind === 'p-256' ? undefined : tpm.ekCertificate(kind).toString('base64');
      expect(evidence.ek.cert).toBe(certificate);

      const attest = decodeAttest(bytes(evidence.quote.attest));
      if (!attest.ok || attest.value.kind !== 'quote') throw new Error('not a quote');
      expect(Buffer.from(attest.value.extraData)).toEqual(digest);
      expect(attest.value.selections).toEqual([{ bank: 'sha256', pcrs: [0, 1, 2, 3, 4, 5, 6, 7] }]);
      expect(Object.keys(evidence.quote.pcrs)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
      const values = Buffer.from(Object.values(evidence.quote.pcrs).join(''), 'hex');
      expect(Buffer.from(attest.value.pcrDigest)).toEqual(createHash('sha256').update(values).digest());

      const ak = decodePublicArea(bytes(evidence.ak));
      if (!ak.ok) throw new Error(ak.problem);
      const { fixedTpm, fixedParent, sensitiveDataOrigin, userWithAuth, restricted, sign, noDa } = attribute;
      expect(ak.value.attributes).toBe(
        fixedTpm | fixedParent | sensitiveDataOrigin | userWithAuth | restricted | sign | noDa,
      );
      await checkQuote(tpm, evidence, digest);
      expect(await left(tpm)).toEqual(untouched);
      expect(existsSync(join(cacheOf(), 'tpm'))).toBe(false);
    });

    test('opens a challenge, and the proof is a MAC over the digest', async () => {
      const { evidence: first } = await evidenceOf(node(tpm, kind));
      const secret = randomBytes(32);
      const challenge = await challengeFor(tpm, first, secret);
      const { digest, evidence } = await evidenceOf(node(tpm, kind), challenge);
      const proof = createHmac('sha256', secret).update(digest).digest('base64');
      expect(evidence.activation).toEqual({ challenge: 'AQID', proof });
      // The same key was made again.
      expect(evidence.ak).toBe(first.ak);
      expect(JSON.stringify(evidence)).not.toContain(secret.toString('base64'));
      await checkQuote(tpm, evidence, digest);
      expect(await left(tpm)).toEqual(untouched);
      expect(existsSync(join(cacheOf(), 'tpm'))).toBe(false);
    });

    test('is accepted by attest, which challenges it first', async () => {
      const answerOf = async (challenge?: Challenge) => {
        const { digest, evidence } = await evidenceOf(node(tpm, kind), challenge);
        const named = createHash('sha256').update(spkiOf(evidence)).digest('hex');
        const verified = await attest(tpm, evidence, digest, kind === 'p-256' ? [named] : []);
        expect(verified.providerId).toBe(`tpm:///${named}`);
        return verified.device;
      };
      const first = await answerOf();
      expect(first?.activated).toBe(false);
      const { challenge, credential } = JSON.parse((await first?.challenge()) ?? '') as Challenge;
      const second = await answerOf({ challenge, credential });
      expect(second).toMatchObject({ activated: true, state: { akName: first?.state.akName } });
    });

    test('does not open a challenge for another attestation key, or one that was changed', async () => {
      const { evidence } = await evidenceOf(node(tpm, kind));
      const wrongName = nameOf(evidence);
      wrongName.writeUInt8(wrongName.at(-1)! ^ 1, wrongName.length - 1);
      const other = await challengeFor(tpm, evidence, randomBytes(32), wrongName);
      await expect(evidenceOf(node(tpm, kind), other)).rejects.toThrow(ChallengeRefusedError);
      const good = await challengeFor(tpm, evidence, randomBytes(32));
      const changed = bytes(good.credential);
      // The first byte of the HMAC: behind magic, version and two sizes.
      changed.writeUInt8(changed.at(12)! ^ 1, 12);
      const forged = { ...good, credential: changed.toString('base64') };
      await expect(evidenceOf(node(tpm, kind), forged)).rejects.toThrow(ChallengeRefusedError);
      const cut = { ...good, credential: changed.subarray(0, 40).toString('base64') };
      await expect(evidenceOf(node(tpm, kind), cut)).rejects.toThrow('the credential of the challenge is malformed');
      expect(await left(tpm)).toEqual(untouched);
      expect(existsSync(join(cacheOf(), 'tpm'))).toBe(false);
    });

    test('names the machine by its endorsement key, and gives no names', async () => {
      const { evidence } = await evidenceOf(node(tpm, kind));
      const id = createHash('sha256').update(spkiOf(evidence)).digest('hex');
      expect(await providerOf(node(tpm, kind)).describe()).toEqual({ providerId: `tpm:///${id}`, names: [] });
    });

    test('does not open a challenge for another TPM', async () => {
      const [{ evidence }, { evidence: of }] = [
        await evidenceOf(node(tpm, kind)),
        await evidenceOf(node(stranger, kind)),
      ];
      expect(of.ak).not.toBe(evidence.ak);
      const challenge = await challengeFor(tpm, evidence, randomBytes(32));
      await expect(evidenceOf(node(stranger, kind), challenge)).rejects.toThrow(ChallengeRefusedError);
    });
  });

  test('without a wanted kind: the first certificate that it has', async () => {
    const { evidence } = await evidenceOf(node(tpm));
    expect(bytes(evidence.ek.cert)).toEqual(tpm.ekCertificate('rsa-2048'));
  });
});

describe.skipIf(skip)('a node with a TPM', () => {
  let tpm: SoftwareTpm;
  let site: AuthenticatorSite;
  beforeAll(async () => {
    tpm = await startSoftwareTpm();
    const spki = new X509Certificate(tpm.ekCertificate('p-384')).publicKey.export({ type: 'spki', format: 'der' });
    const endorsementKeys = [createHash('sha256').update(spki).digest('hex')];
    site = await startAuthenticatorSite({
      provider: 'tpm',
      tpm: { machines: 'any', endorsementKeys, nodeName: ['pattern:edge-*'] },
    });
  });
  afterAll(async () => {
    await site?.close();
    await tpm?.stop();
  });

  test('joins with two requests, of one key, and renews with one', async () => {
    const settings = { provider: 'tpm', endorsementKey: 'p-384', servingSignerName: undefined };
    const machine = await site.node('edge-1', { signerName: signers.tpm, settings });
    const run = () => machine.run({ env: tpm.environment });
    const joined = await run();
    const first = printed(joined);
    expect(joined.stderr).toContain('(AttestationChallenge)');
    const asked = await site.requests();
    const reasons = asked.map(({ conditions }) => conditions.map(({ type, reason }) => `${type} ${reason}`).join());
    expect(reasons.toSorted()).toEqual([expect.stringMatching(/^Approved /) as string, 'Denied AttestationChallenge']);
    const keys = asked.map(({ pem }) => {
      const decoded = decodeRequest(Buffer.from(pem));
      return decoded.ok ? Buffer.from(decoded.value.publicKey.spki).toString('hex') : '';
    });
    expect(new Set(keys).size).toBe(1);
    site.platform.advance(first.expires - site.platform.now() + 1_000);
    const renewed = printed(await run());
    expect(renewed.certificatePem).not.toBe(first.certificatePem);
    expect(await site.requests()).toHaveLength(3);
    expect(await left(tpm)).toEqual(untouched);
  });
});

describe('a machine', () => {
  test('without a TPM, and one without tpm2-tools', async () => {
    const evidence = (place: { readonly tcti?: string; readonly path: string }) =>
      tpmProvider((work) => withTpm({ directory: cacheOf(), ...place }, work), undefined).describe();
    mkdirSync(join(folder.path, 'empty'));
    await expect(evidence({ path: join(folder.path, 'empty') })).rejects.toThrow('apt-get install tpm2-tools');
    if (skip) return;
    const device = join(folder.path, 'tpmrm0');
    await expect(evidence({ tcti: `device:${device}`, path: process.env['PATH'] ?? '' })).rejects.toThrow(
      `there is no TPM: ${device} does not exist`,
    );
  });
});

const challengeKey = randomBytes(32);

/** As attest examines and verifies it, with the TPM's manufacturer as root and `endorsementKeys` besides. */
async function attest(
  { authority }: SoftwareTpm,
  evidence: TpmEvidence,
  digest: Buffer,
  endorsementKeys: string[],
): Promise<Machine> {
  const policy: TpmAttestation = {
    roots: [authority.rootPem()],
    intermediates: [authority.issuerPem()],
    endorsementKeys,
    machines: 'any',
    nodeNames: ['*'],
  };
  const provider = attestingProvider(policy, 'a/b/c', {
    challengeKey: { mac: (message) => Promise.resolve(createHmac('sha256', challengeKey).update(message).digest()) },
    randomBytes,
    findMachine: () => Promise.resolve(undefined),
  });
  const data = Buffer.from(JSON.stringify(evidence));
  const binding = (nonce: string) => (nonce === evidence.nonce ? digest.toString('hex') : '');
  const examined = await provider.examine({ version: 'tpm/v1', data, binding, now: Date.now() } as unknown as Evidence);
  if (!examined.ok) throw new Error(JSON.stringify(examined.problem));
  const verified = await examined.value.verify();
  if (!verified.ok) throw new Error(JSON.stringify(verified.problem));
  return verified.value;
}
