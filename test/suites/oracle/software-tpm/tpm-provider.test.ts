/**
 * The tpm provider and a TPM that is not ours: swtpm makes the keys, quotes and certificates, and decides whether it activates
 * a credential.
 */
import { createHmac, createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tpmProvider } from '../../../../core/attestation/tpm/provider.ts';
import type { AttestationProvider, Evidence, Machine } from '../../../../core/attestation/evidence/provider.ts';
import { sha256 } from '../../../../core/encoding/digest.ts';
import { refusalMessage } from '../../../../core/outcome/outcome.ts';
import { startSoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import type { SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { createTpmAuthority } from '../../../harness/tpm/tpm-authority.ts';
import type { TpmAuthority } from '../../../harness/tpm/tpm-authority.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('swtpm');

const now = Date.parse('2027-01-01T00:00:00Z');
const binding = 'b1'.repeat(32);
const pcrs = [0, 1, 2, 3, 4, 5, 6, 7];

/** A key of a TPM, in the files of its folder: `<name>.ctx` and `<name>.pub`. */
type KeyName = 'ecc' | 'rsa' | 'pss' | 'p384' | 'unrestricted';

describe.skipIf(skip)('a software TPM', () => {
  let authority: TpmAuthority;
  let tpm: SoftwareTpm;
  let other: SoftwareTpm;
  let provider: AttestationProvider;

  beforeAll(async () => {
    authority = createTpmAuthority();
    tpm = await startSoftwareTpm({ name: 'one', authority });
    other = await startSoftwareTpm({ name: 'two', authority });
    for (const one of [tpm, other]) {
      await one.tool('tpm2_createek', '-G', 'ecc', '-c', 'ek256.ctx');
      await one.flush();
      await one.tool('tpm2_readpublic', '-c', 'ek256.ctx', '-f', 'pem', '-o', 'ek256.pem');
      await one.flush();
      await createKey(one, 'ecc', 'ecc', 'sha256', 'ecdsa');
    }
    await createKey(tpm, 'rsa', 'rsa', 'sha256', 'rsassa');
    await createKey(tpm, 'pss', 'rsa', 'sha256', 'rsapss');
    await createKey(tpm, 'p384', 'ecc384', 'sha384', 'ecdsa');
    provider = providerWith({});
  });
  afterAll(async () => {
    await tpm.stop();
    await other.stop();
    authority.remove();
  });

  test.for([
    ['rsa-2048', '0x81010001', 'ecc'],
    ['rsa-2048', '0x81010001', 'rsa'],
    ['rsa-2048', '0x81010001', 'pss'],
    ['p-384', '0x81010016', 'ecc'],
    ['p-384', '0x81010016', 'p384'],
  ] as const)(
    'a certified %s endorsement key (%s) and the attestation key %s are activated',
    async ([kind, handle, key]) => {
      const ek = { cert: tpm.ekCertificate(kind).toString('base64') };
      const evidence = await evidenceOf(tpm, key, { ek });
      const activation = await answer(tpm, provider, evidence, handle, key);
      const machine = await accepted(provider, { ...evidence, activation });
      expect(machine.device).toMatchObject({ activated: true });
      expect(machine.device?.state.akName).toBe(nameIn(tpm, key));
    },
  );

  test('so is a P-256 endorsement key that the configuration names', async () => {
    const spki = createPublicKey(tpm.read('ek256.pem')).export({ type: 'spki', format: 'der' });
    const evidence = await evidenceOf(tpm, 'ecc', { ek: { spki: spki.toString('base64') } });
    const named = providerWith({ roots: [], endorsementKeys: [sha256(spki).toString('hex')] });
    const activation = await answer(tpm, named, evidence, 'ek256.ctx', 'ecc');
    expect((await accepted(named, { ...evidence, activation })).device?.activated).toBe(true);
    expect(await refusal(provider, evidence)).toMatch('is missing: the evidence holds the key alone');
  });

  test('the chain needs the intermediate of the configuration', async () => {
    const evidence = await evidenceOf(tpm, 'ecc');
    expect(await refusal(providerWith({ intermediates: [] }), evidence)).toMatch('is not under a root');
    // A pinned certificate of a CA may be any in the chain.
    expect(await refusal(providerWith({ roots: [authority.issuerPem()], intermediates: [] }), evidence)).toBe(
      'accepted',
    );
  });

  test('no TPM activates the credential of another endorsement key or of another attestation key', async () => {
    const evidence = await evidenceOf(tpm, 'ecc');
    // The endorsement key of one TPM, the attestation key and the quote of the other.
    const mixed = { ...(await evidenceOf(other, 'ecc')), ek: evidence['ek'] };
    await expect(answer(other, provider, mixed, '0x81010001', 'ecc')).rejects.toThrow('activatecredential');
    await expect(answer(tpm, provider, mixed, '0x81010001', 'ecc')).rejects.toThrow('activatecredential');
    await expect(answer(tpm, provider, evidence, '0x81010001', 'rsa')).rejects.toThrow('activatecredential');
    // The right TPM with the wrong endorsement key.
    await expect(answer(tpm, provider, evidence, '0x81010016', 'ecc')).rejects.toThrow('activatecredential');
  });

  test('keys that are no attestation keys are refused by name', async () => {
    await tpm.tool('tpm2_createprimary', '-C', 'o', '-c', 'primary.ctx', '-Q');
    await tpm.flush();
    const attributes = 'fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign';
    const files = ['-u', 'free.pub', '-r', 'free.priv'];
    await tpm.tool('tpm2_create', '-C', 'primary.ctx', '-G', 'ecc256:ecdsa-sha256', '-a', attributes, ...files, '-Q');
    await tpm.flush();
    await tpm.tool('tpm2_load', '-C', 'primary.ctx', ...files, '-c', 'unrestricted.ctx', '-Q');
    await tpm.flush();
    await readPublic(tpm, 'unrestricted');
    const evidence = await evidenceOf(tpm, 'unrestricted');
    expect(await refusal(provider, evidence)).toMatch('the attestation key is not restricted: it signs any data');
    await tpm.tool('tpm2_readpublic', '-c', '0x81010001', '-f', 'tss', '-o', 'ek.pub', '-Q');
    expect(await refusal(provider, { ...evidence, ak: areaIn(tpm, 'ek').toString('base64') })).toMatch(
      'the attestation key decrypts and does not sign, as an endorsement key or storage key does',
    );
  });

  test('a quote for another request, with a trailing byte, or of another key is refused by name', async () => {
    const evidence = await evidenceOf(tpm, 'ecc');
    const elsewhere = await quote(tpm, 'ecc', { extraData: 'b2'.repeat(32) });
    expect(await refusal(provider, { ...evidence, quote: elsewhere })).toMatch('the quote is not for this request');
    expect(await refusal(provider, { ...evidence, quote: await quote(other, 'ecc') })).toMatch(
      'the quote is not signed with the attestation key',
    );
    const right = await quote(tpm, 'ecc');
    const longer = Buffer.concat([Buffer.from(right.attest, 'base64'), Buffer.of(0)]).toString('base64');
    expect(await refusal(provider, { ...evidence, quote: { ...right, attest: longer } })).toMatch(
      'the quote has trailing bytes',
    );
  });

  test('the PCR that differs from the policy is named', async () => {
    const zero = '0'.repeat(64);
    const policy = { bank: 'sha256', values: { '4': [zero], '7': [zero] } } as const;
    expect(await refusal(provider, await evidenceOf(tpm, 'p384'), policy)).toBe('accepted');
    await tpm.tool('tpm2_pcrextend', `7:sha256=${'11'.repeat(32)}`);
    // Values from before, beside a quote from now.
    expect(await refusal(provider, await evidenceOf(tpm, 'ecc', {}, { '7': zero }))).toMatch(
      'the quote is of other PCR values than were sent',
    );
    const extended = sha256(Buffer.from(zero + '11'.repeat(32), 'hex')).toString('hex');
    const evidence = await evidenceOf(tpm, 'ecc', {}, { '7': extended });
    expect(await refusal(provider, evidence)).toBe('accepted');
    expect(await refusal(provider, evidence, policy)).toBe(
      'the profile does not permit the value of PCR 7 (Secure Boot policy)',
    );
    const fewer = { ...(await quote(tpm, 'ecc', { pcrs: [0, 1, 2, 3] })), pcrs: { '7': extended } };
    expect(await refusal(provider, { ...evidence, quote: fewer })).toBe('the quote is of other PCRs than were sent');
  });

  test('a restart shows in the state, and the same attestation key quotes on', async () => {
    const before = (await accepted(provider, await evidenceOf(other, 'ecc'))).device;
    await other.tool('tpm2_evictcontrol', '-C', 'o', '-c', 'ecc.ctx', '0x81010010', '-Q');
    await other.restart({ orderly: true });
    const after = (await accepted(provider, await evidenceOf(other, 'ecc', {}, {}, '0x81010010'))).device;
    expect(after?.state.akName).toBe(before?.state.akName);
    expect(after?.state.resetCount).toBe((before?.state.resetCount ?? 0) + 1);
    expect(after?.state.clock).toBeGreaterThan(before?.state.clock ?? Infinity);
  });

  // ── Steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  function providerWith(policy: Partial<Parameters<typeof tpmProvider>[0]>): AttestationProvider {
    return tpmProvider(
      {
        roots: [authority.rootPem()],
        intermediates: [authority.issuerPem()],
        endorsementKeys: [],
        machines: 'any',
        nodeNames: ['*'],
        ...policy,
      },
      'audience',
      {
        challengeKey: { mac: (message) => Promise.resolve(createHmac('sha256', 'K').update(message).digest()) },
        randomBytes: (count) => Buffer.alloc(count, 7),
        findMachine: () => Promise.resolve(undefined),
      },
    );
  }
});

type Data = Readonly<Record<string, unknown>>;

async function createKey(tpm: SoftwareTpm, name: KeyName, kind: string, hash: string, scheme: string): Promise<void> {
  const args = ['-G', kind, '-g', hash, '-s', scheme, '-n', `${name}.name`];
  await tpm.tool('tpm2_createak', '-C', '0x81010001', '-c', `${name}.ctx`, ...args, '-Q');
  await tpm.flush();
  await readPublic(tpm, name);
}

async function readPublic(tpm: SoftwareTpm, name: KeyName): Promise<void> {
  await tpm.tool('tpm2_readpublic', '-c', `${name}.ctx`, '-f', 'tss', '-o', `${name}.pub`, '-n', `${name}.name`, '-Q');
  await tpm.flush();
}

/** tpm2-tools write a TPM2B_PUBLIC. */
function areaIn(tpm: SoftwareTpm, name: string): Buffer {
  return tpm.read(`${name}.pub`).subarray(2);
}

function nameIn(tpm: SoftwareTpm, name: string): string {
  return tpm.read(`${name}.name`).toString('hex');
}

async function quote(
  tpm: SoftwareTpm,
  key: KeyName,
  { extraData = binding, pcrs: quoted = pcrs, context = `${key}.ctx` } = {},
): Promise<{ attest: string; sig: string }> {
  const scheme = { ecc: 'ecdsa', rsa: 'rsassa', pss: 'rsapss', p384: 'ecdsa', unrestricted: 'ecdsa' }[key];
  const hash = key === 'p384' ? 'sha384' : 'sha256';
  const out = ['-m', 'attest', '-s', 'sig', '-f', 'tss', '--scheme', scheme, '-g', hash, '-Q'];
  await tpm.tool('tpm2_quote', '-c', context, '-l', `sha256:${quoted.join()}`, '-q', extraData, ...out);
  await tpm.flush();
  return { attest: tpm.read('attest').toString('base64'), sig: tpm.read('sig').toString('base64') };
}

async function evidenceOf(
  tpm: SoftwareTpm,
  key: KeyName,
  data: Data = {},
  values: Readonly<Record<string, string>> = {},
  context = `${key}.ctx`,
): Promise<Data> {
  const zero = Object.fromEntries(pcrs.map((pcr) => [pcr, '0'.repeat(64)]));
  return {
    v: 1,
    ek: { cert: tpm.ekCertificate('rsa-2048').toString('base64') },
    ak: areaIn(tpm, key).toString('base64'),
    quote: { ...(await quote(tpm, key, { context })), pcrs: { ...zero, ...values } },
    ...data,
  };
}

function ask(data: Data, policy?: Evidence['pcrs']): Evidence {
  return {
    version: 'tpm/v1',
    data: Buffer.from(JSON.stringify(data)),
    request: undefined as never,
    nodeName: 'worker-1',
    clusterName: 'blue',
    binding: () => binding,
    ...(policy === undefined ? {} : { pcrs: policy }),
    now,
  };
}

async function accepted(provider: AttestationProvider, data: Data): Promise<Machine> {
  const examined = await provider.examine(ask(data));
  if (!examined.ok) throw new Error(refusalMessage(examined.problem));
  const machine = await examined.value.verify();
  if (!machine.ok) throw new Error(refusalMessage(machine.problem));
  return machine.value;
}

async function refusal(provider: AttestationProvider, data: Data, policy?: Evidence['pcrs']): Promise<string> {
  const examined = await provider.examine(ask(data, policy));
  return examined.ok ? 'accepted' : refusalMessage(examined.problem);
}

/** Has the TPM activate the credential of a challenge. Rejects if it does not. */
async function answer(
  tpm: SoftwareTpm,
  provider: AttestationProvider,
  data: Data,
  endorsementKey: string,
  key: KeyName,
): Promise<{ challenge: string; proof: string }> {
  const { device } = await accepted(provider, data);
  const { challenge, credential } = JSON.parse((await device?.challenge()) ?? '') as Record<string, string>;
  writeFileSync(join(tpm.folder, 'credential'), Buffer.from(credential ?? '', 'base64'));
  // The default templates permit the use of the key through a policy; the one of P-384 also without.
  const usesPolicy = endorsementKey !== '0x81010016';
  if (usesPolicy) {
    await tpm.tool('tpm2_startauthsession', '--policy-session', '-S', 'session.ctx');
    await tpm.tool('tpm2_policysecret', '-S', 'session.ctx', '-c', 'e', '-Q');
  }
  try {
    const session = usesPolicy ? ['-P', 'session:session.ctx'] : [];
    const files = ['-i', 'credential', '-o', 'secret'];
    await tpm.tool('tpm2_activatecredential', '-c', `${key}.ctx`, '-C', endorsementKey, ...files, ...session, '-Q');
  } finally {
    if (usesPolicy) await tpm.tool('tpm2_flushcontext', 'session.ctx');
    await tpm.flush();
  }
  const proof = createHmac('sha256', tpm.read('secret')).update(Buffer.from(binding, 'hex'));
  return { challenge: challenge ?? '', proof: proof.digest('base64') };
}
