/* What the plugin makes of every answer a cluster can give: virtual time, an API in memory, a cache on disk. */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import type { ApiAnswer, JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { Progress } from '../../../../kubelet-authenticator/credential/credential.ts';
import { obtain } from '../../../../kubelet-authenticator/credential/obtain.ts';
import { removeBootstrapToken } from '../../../../kubelet-authenticator/request/login.ts';
import { ChallengeRefusedError } from '../../../../kubelet-authenticator/providers/provider.ts';
import type { NodeProviderPort } from '../../../../kubelet-authenticator/providers/provider.ts';
import { clientUsages } from '../../../../kubelet-authenticator/request/request.ts';
import { resolveSettings } from '../../../../kubelet-authenticator/settings/settings.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { settingsFile } from '../settings-file.ts';

interface Stored {
  readonly name: string;
  readonly spec: { readonly request: string; readonly signerName: string; readonly username: string };
  status: JsonObject;
  annotations: Record<string, string>;
}

/** What the cluster does with a request that it got. */
type Decide = (stored: Stored, nth: number) => Promise<void> | void;

let folder: ReturnType<typeof temporaryFolder>;
let now: number;
let logged: string[];
let objects: Map<string, Stored>;
let decide: Decide;
let created: Stored[];
/** The API server believes no certificate of ours. */
let distrusted: boolean;
/** Of the settings file, besides. */
let more: Readonly<Record<string, unknown>>;
let renews: boolean;
/** What this program makes, newest first. */
let versions: NodeProviderPort['versions'];
let answersChallenges: boolean;
let caKeys: webcrypto.CryptoKeyPair;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

beforeAll(async () => {
  caKeys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
});
beforeEach(() => {
  folder = temporaryFolder('obtain');
  now = Date.parse('2026-01-01T00:00:00Z');
  logged = [];
  objects = new Map();
  created = [];
  distrusted = false;
  more = {};
  renews = true;
  versions = ['aws/v2', 'aws/v1'];
  answersChallenges = true;
  writeFileSync(join(folder.path, 'token'), JSON.stringify({ token: 'abcdef.0123456789abcdef' }));
});
afterEach(() => folder.remove());

async function issue(stored: Stored, key?: webcrypto.CryptoKey): Promise<void> {
  const decoded = decodeRequest(Buffer.from(stored.spec.request, 'base64'));
  if (!decoded.ok) throw new Error('unreadable');
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: '01',
    subject: [{ O: ['system:nodes'] }, { CN: [decoded.value.subject.commonName] }],
    issuer: 'CN=ca',
    notBefore: new Date(now - 300_000),
    notAfter: new Date(now + 30 * 86_400_000),
    signingAlgorithm: algorithm,
    publicKey: key ?? new x509.PublicKey(new Uint8Array(decoded.value.publicKey.spki)),
    signingKey: caKeys.privateKey,
  });
  stored.status = { ...stored.status, certificate: Buffer.from(certificate.toString('pem')).toString('base64') };
}

const no =
  (type: string, reason: string): Decide =>
  (stored) => {
    stored.status = { conditions: [{ type, status: 'True', reason, message: `because of ${reason}` }] };
  };

function objectOf({ name, spec, status, annotations }: Stored): ApiAnswer<JsonObject> {
  return { ok: true, value: { metadata: { name, resourceVersion: '1', annotations }, spec, status } };
}

const provider: Omit<NodeProviderPort, 'versions' | 'answersChallenges'> = {
  renews: true,
  describe: () => Promise.resolve({ names: [] }),
  makeEvidence({ version, challenge, refused, nonce }) {
    if (challenge?.credential === unopenable) throw new ChallengeRefusedError('the credential does not open');
    const data = { v: version, answers: challenge?.challenge, refused, nonce };
    return Promise.resolve({ data: JSON.stringify(data), staleAt: now + 240_000 });
  },
};

/** A credential that this machine cannot open. */
const unopenable = 'dW5vcGVuYWJsZQ==';

/** `patience` in milliseconds of virtual time; each look at the cluster takes a second of it. */
async function ask(patience = 60_000): Promise<Progress> {
  const resolved = resolveSettings(
    JSON.stringify({
      ...settingsFile,
      cacheDirectory: join(folder.path, 'cache'),
      bootstrapCredentialsFile: join(folder.path, 'token'),
      ...more,
    }),
  );
  if (!resolved.ok) throw new Error(resolved.problem.join());
  const settings = resolved.value;
  return obtain(
    {
      settings,
      slot: { directory: settings.cacheDirectory, name: 'client' },
      wanted: { signerName: settings.signerName, usages: clientUsages, names: { ip: [], dns: [] } },
      provider: { ...provider, versions, renews, answersChallenges },
      login: undefined,
      dependencies: { now: () => now, log: (line) => void logged.push(line) },
      connect: (_place, login) => ({
        async create(object) {
          if (distrusted && login.as === 'node')
            return { ok: false, problem: { why: 'Unauthorized', message: 'Unauthorized' } };
          const { metadata, spec } = object as { metadata: { name: string }; spec: Stored['spec'] };
          if (objects.has(metadata.name)) return { ok: false, problem: { why: 'Conflict', message: 'exists' } };
          const stored = {
            name: metadata.name,
            spec: { ...spec, username: login.username ?? '' },
            status: {},
            annotations: {},
          };
          objects.set(stored.name, stored);
          created.push(stored);
          await decide(stored, created.length);
          return objectOf(stored);
        },
        async get(name) {
          if (distrusted && login.as === 'node')
            return { ok: false, problem: { why: 'Unauthorized', message: 'Unauthorized' } };
          const stored = objects.get(name);
          return stored === undefined ? { ok: false, problem: { why: 'NotFound', message: 'none' } } : objectOf(stored);
        },
        async change() {
          now += 1_000;
        },
        close: () => {},
      }),
    },
    undefined,
    now + patience,
  );
}

const versionsSent = () =>
  created.map(({ spec }) => {
    const [, block = ''] =
      /ATTESTATION PROVIDER-----\n(.*)\n/.exec(Buffer.from(spec.request, 'base64').toString()) ?? [];
    return Buffer.from(block, 'base64').toString();
  });
const dataSent = () =>
  created.map(({ spec }) => {
    const [, block = ''] =
      /ATTESTATION DATA-----\n([^-]*)\n/.exec(Buffer.from(spec.request, 'base64').toString()) ?? [];
    return JSON.parse(Buffer.from(block, 'base64').toString()) as { answers?: string; refused: boolean };
  });
const keysSent = () =>
  new Set(
    created.map(({ spec }) => {
      const decoded = decodeRequest(Buffer.from(spec.request, 'base64'));
      return decoded.ok ? Buffer.from(decoded.value.publicKey.spki).toString('hex') : '';
    }),
  );

test('finding 7: an older signing side names the version that it supports, and gets it at once', async () => {
  decide = async (stored, nth) => {
    if (nth > 1) return issue(stored);
    await no('Denied', 'AttestationVersion')(stored, nth);
    stored.annotations['countersign.dev/supported-attestation-versions'] = 'tpm/v1,aws/v1';
  };
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(versionsSent()).toEqual(['aws/v2', 'aws/v1']);
  expect(keysSent().size).toBe(1);
});

/** As the signing side denies it, with the versions that it takes. */
const takesOnly =
  (taken: string): Decide =>
  async (stored, nth) => {
    await no('Denied', 'AttestationVersion')(stored, nth);
    stored.annotations['countersign.dev/supported-attestation-versions'] = taken;
  };

test('finding 7: the older version is remembered while the attempt lasts, and given up with the next one', async () => {
  // Denied once more for another reason, the program ends: what it learned is in the work file.
  decide = (stored, nth) =>
    nth === 1 ? takesOnly('aws/v1')(stored, nth) : no('Denied', 'IdentityNotAllowed')(stored, nth);
  expect(await ask()).toMatchObject({ kind: 'refused' });
  now += 120_000;
  decide = (stored) => issue(stored);
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(versionsSent()).toEqual(['aws/v2', 'aws/v1', 'aws/v1']);
  // The next certificate is asked for with the newest again: the signing side may have been upgraded.
  now += 29 * 86_400_000;
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(versionsSent().at(-1)).toBe('aws/v2');
});

test('finding 7: two signing sides that contradict each other get a few requests, not requests for ever', async () => {
  decide = (stored, nth) => takesOnly(versionsSent().at(-1) === 'aws/v2' ? 'aws/v1' : 'aws/v2')(stored, nth);
  expect(await ask()).toMatchObject({ kind: 'refused' });
  expect(versionsSent()).toEqual(['aws/v2', 'aws/v1', 'aws/v2', 'aws/v1']);
});

test('finding 7: where no list came with the refusal, the next older version is tried, and no newer one', async () => {
  decide = no('Failed', 'AttestationVersion');
  expect(await ask()).toMatchObject({ kind: 'refused' });
  expect(versionsSent()).toEqual(['aws/v2', 'aws/v1']);
});

test('finding 7: a node that may send only one version sends no other, and logs why it is refused', async () => {
  versions = ['aws/v1'];
  decide = takesOnly('aws/v2');
  expect(await ask()).toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('because of AttestationVersion') as string,
  });
  expect(versionsSent()).toEqual(['aws/v1']);
});

test('an approver that supports no version of this program gets one request, and the log says so', async () => {
  decide = (stored, nth) => {
    void no('Denied', 'AttestationVersion')(stored, nth);
    stored.annotations['countersign.dev/supported-attestation-versions'] = 'aws/v7';
  };
  expect(await ask()).toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('(AttestationVersion)') as string,
  });
  expect(created).toHaveLength(1);
});

test('a temporary failure is tried again, and each distinct one is logged once', async () => {
  let failures = 0;
  decide = (stored) => {
    failures += 1;
    if (failures < 3) {
      objects.delete(stored.name);
      created.pop();
      throw new Error('connection refused');
    }
    return issue(stored);
  };
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(logged.filter((line) => line.includes('connection refused'))).toEqual(['trying again: connection refused']);
});

test('after a refusal the provider is told, so that it may say more; after a certificate it is not', async () => {
  const refusedOf = () => dataSent().map(({ refused }) => refused);
  decide = no('Denied', 'IdentityNotAllowed');
  expect(await ask()).toMatchObject({ kind: 'refused' });
  expect(refusedOf()).toEqual([false]);
  now += 60_000;
  decide = (stored) => issue(stored);
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(refusedOf()).toEqual([false, true]);
  now += 29 * 86_400_000;
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(refusedOf()).toEqual([false, true, false]);
});

test('evidence that came too late is made anew, with the same key, a few times', async () => {
  decide = no('Denied', 'AttestationInvalid');
  expect(await ask()).toMatchObject({ kind: 'refused', askAgainAt: now + 60_000 });
  expect(created).toHaveLength(4);
  expect(keysSent().size).toBe(1);
  // Left alone until then, and twice as long after the next.
  expect(await ask()).toMatchObject({ kind: 'refused', message: expect.stringContaining('next request at') as string });
  expect(created).toHaveLength(4);
  now += 60_000;
  expect(await ask()).toMatchObject({ kind: 'refused', askAgainAt: now + 120_000 });
  now += 120_000;
  decide = (stored) => issue(stored);
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(keysSent().size).toBe(1);
});

test.each(['TofuNodeTaken', 'Revoked', 'IdentityNotAllowed', 'KeyReused', 'SignerValidationFailure', 'OtherReason'])(
  '%s is an answer: nothing is tried at once, and no other key',
  async (reason) => {
    decide = no(reason === 'SignerValidationFailure' ? 'Failed' : 'Denied', reason);
    expect(await ask()).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining(`because of ${reason}`) as string,
    });
    expect(created).toHaveLength(1);
  },
);

test.each(['MachineNotFound', 'MachineNotReady'])(
  '%s: the node asks every minute, later every ten minutes, and joins when its Machine is there',
  async (reason) => {
    decide = no('Denied', reason);
    const waits: number[] = [];
    for (let times = 0; times < 16; times += 1) {
      const progress = await ask();
      if (progress.kind !== 'refused') throw new Error(progress.kind);
      expect(progress.message).toContain(`because of ${reason}`);
      waits.push((progress.askAgainAt - now) / 60_000);
      now = progress.askAgainAt;
    }
    expect(waits).toEqual([...Array<number>(10).fill(1), 2, 4, 8, 10, 10, 10]);
    expect([created.length, keysSent().size]).toEqual([16, 1]);
    decide = (stored) => issue(stored);
    expect(await ask()).toMatchObject({ kind: 'issued' });
  },
);

test('a request without a decision is followed while its evidence is fresh, then replaced, ever less often', async () => {
  decide = () => {};
  expect(await ask(100_000)).toMatchObject({ kind: 'waiting' });
  expect(created).toHaveLength(1);
  const start = now - 100_000;
  expect(await ask(10 * 3_600_000)).toMatchObject({ kind: 'waiting' });
  // After 4, 8, 16, 32, 60, 60 … minutes.
  const hours = (now - start) / 3_600_000;
  expect(created.length).toBeGreaterThan(hours);
  expect(created.length).toBeLessThan(hours + 6);
  expect(keysSent().size).toBe(1);
});

test('an approved one is waited for however old its evidence', async () => {
  decide = (stored) => {
    stored.status = { conditions: [{ type: 'Approved' }] };
  };
  expect(await ask(3_600_000)).toMatchObject({
    kind: 'waiting',
    message: expect.stringContaining('is approved') as string,
  });
  expect(created).toHaveLength(1);
  await issue(created[0]!);
  expect(await ask()).toMatchObject({ kind: 'issued' });
});

test('an object of our name that another user created is not waited for', async () => {
  decide = async (stored, nth) => {
    if (nth > 1) {
      await issue(stored);
      return;
    }
    // Another user created the same object first: only its username differs.
    objects.set(stored.name, { ...stored, spec: { ...stored.spec, username: 'system:bootstrap:ffffff' } });
  };
  const waiting = await ask(1_000);
  expect(waiting.kind).toBe('waiting');
  // The username that the API server gave us is on record now; what the name leads to today is another object.
  now += 300_000;
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(logged.join()).toContain('this node did not create it');
});

test('one that was deleted is asked for again', async () => {
  decide = () => {};
  expect(await ask(1_000)).toMatchObject({ kind: 'waiting' });
  objects.clear();
  decide = (stored) => issue(stored);
  expect(await ask()).toMatchObject({ kind: 'issued' });
  expect(created).toHaveLength(2);
  // While its evidence is fresh, the very same.
  expect(created[1]!.name).toBe(created[0]!.name);
});

test('a certificate that is not for our key is not taken', async () => {
  const { publicKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  decide = (stored) => issue(stored, publicKey);
  expect(await ask()).toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('holds a key that is not that of its certificate') as string,
  });
});

test('a certificate that the API server does not believe: asked for as the first time, with the key it is known by', async () => {
  more = { keepBootstrapToken: true };
  decide = (stored) => issue(stored);
  const first = await ask();
  now += 28 * 86_400_000;
  distrusted = true;
  decide = () => {};
  expect(await ask(2_000)).toMatchObject({ kind: 'waiting' });
  // Found again by the next call, not asked anew.
  expect(await ask(2_000)).toMatchObject({ kind: 'waiting' });
  expect(created.map(({ spec }) => spec.username)).toEqual(['system:bootstrap:abcdef', 'system:bootstrap:abcdef']);
  expect(keysSent().size).toBe(1);
  await issue(created[1]!);
  const second = await ask();
  if (first.kind !== 'issued' || second.kind !== 'issued') throw new Error(second.kind);
  expect(second.credential.keyPem).toBe(first.credential.keyPem);
  expect(second.credential.notAfter).toBeGreaterThan(first.credential.notAfter);
  expect(logged.join()).toContain('the certificate in use (system:node:n1) is not accepted');
});

describe('finding 14: the bootstrap token after the first certificate', () => {
  const token = () => join(folder.path, 'token');

  test('finding 14: it is removed, and the node renews without it', async () => {
    decide = (stored) => issue(stored);
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(existsSync(token())).toBe(false);
    expect(logged.join()).toContain('removed the bootstrap token');
    expect(logged.join()).not.toContain('0123456789abcdef');
    now += 28 * 86_400_000;
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(created.map(({ spec }) => spec.username)).toEqual(['system:bootstrap:abcdef', 'system:node:n1']);
  });

  test('finding 14: it stays while there is no certificate', async () => {
    decide = () => {};
    expect(await ask(1_000)).toMatchObject({ kind: 'waiting' });
    decide = no('Denied', 'IdentityNotAllowed');
    now += 300_000;
    expect(await ask()).toMatchObject({ kind: 'refused' });
    expect(existsSync(token())).toBe(true);
  });

  test('finding 14: it stays if the operator wants it, and where the next certificate needs it', async () => {
    decide = (stored) => issue(stored);
    more = { keepBootstrapToken: true };
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(existsSync(token())).toBe(true);
    now += 40 * 86_400_000;
    more = {};
    renews = false;
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(existsSync(token())).toBe(true);
  });

  test.each([
    ['a kubeconfig in JSON', { kind: 'Config', users: [{ name: 'u', user: { token: 'abcdef.0123456789abcdef' } }] }],
    ['a token of another kind', { token: 'eyJhbGciOi' }],
    ['a token with something beside it', { token: 'abcdef.0123456789abcdef', tokenFile: '/dev/null' }],
  ])('finding 14: %s is not removed: join did not write it', async (_, content) => {
    writeFileSync(token(), JSON.stringify(content));
    expect(removeBootstrapToken(token())).toBe(false);
    expect(JSON.parse(readFileSync(token(), 'utf8'))).toEqual(content);
  });

  test('finding 14: a node whose certificate expired logs how it can return: with a new token, for the same key', async () => {
    decide = (stored) => issue(stored);
    expect(await ask()).toMatchObject({ kind: 'issued' });
    now += 40 * 86_400_000;
    await expect(ask()).rejects.toThrow(/cannot be read.*\(ENOENT\); kubelet-authenticator join with a new token/);
    writeFileSync(token(), JSON.stringify({ token: 'fedcba.0123456789abcdef' }));
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(keysSent().size).toBe(1);
    expect(existsSync(token())).toBe(false);
  });
});

describe('a challenge', () => {
  /** The challenge that each request answers. */
  const answered = () => dataSent().map(({ answers }) => answers);
  const annotation = (challenge: string, credential = 'YmxvYg==') => JSON.stringify({ v: 1, challenge, credential });
  /** As the approver denies the nth request: challenge c1, c2 … */
  const challenges =
    (text: (nth: number) => string = (nth) => annotation(`c${nth}`)): Decide =>
    async (stored, nth) => {
      await no('Denied', 'AttestationChallenge')(stored, nth);
      stored.annotations['countersign.dev/attestation-challenge'] = text(nth);
    };
  const grant: Decide = (stored) => issue(stored);
  const work = () => JSON.parse(readFileSync(join(folder.path, 'cache/client-next.json'), 'utf8')) as object;

  test('is answered at once by the next request, of the same key', async () => {
    decide = (stored, nth) => (nth === 1 ? challenges()(stored, nth) : issue(stored));
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, 'c1']);
    expect(keysSent().size).toBe(1);
  });

  test('is read by the next run, if the process dies between the refusal and the answer', async () => {
    decide = () => {};
    // The time is over: the request stays in the cluster.
    expect(await ask(2_000)).toMatchObject({ kind: 'waiting' });
    await challenges()(created[0]!, 1);
    decide = (stored) => issue(stored);
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, 'c1']);
    expect(keysSent().size).toBe(1);
  });

  test('is in the work file before it is answered: a run that dies while it makes the answer is resumed', async () => {
    const makeEvidence = provider.makeEvidence;
    const dying = vi.spyOn(provider, 'makeEvidence').mockImplementation((question) => {
      if (question.challenge !== undefined) throw new Error('killed');
      return makeEvidence(question);
    });
    decide = (stored, nth) => (nth === 1 ? challenges()(stored, nth) : issue(stored));
    await expect(ask(1_000)).rejects.toThrow('killed');
    expect(work()).toMatchObject({ challenge: { challenge: 'c1' }, challenges: 1, refusals: 0 });
    dying.mockRestore();
    now += 60_000;
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, 'c1']);
  });

  test('is not answered when it is too late: the next request gets another one', async () => {
    decide = () => {};
    await ask(2_000);
    await challenges()(created[0]!, 1);
    // It is received, and then the machine is suspended.
    const dying = vi.spyOn(provider, 'makeEvidence').mockImplementation(() => {
      throw new Error('suspended');
    });
    await expect(ask(1_000)).rejects.toThrow('suspended');
    dying.mockRestore();
    now += 90_000;
    decide = (stored, nth) => (nth === 2 ? challenges()(stored, nth) : issue(stored));
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, undefined, 'c2']);
  });

  test('whose answer is refused is not answered again: the next request gets another one', async () => {
    const script = [challenges(), no('Denied', 'AttestationInvalid'), challenges(), grant];
    decide = (stored, nth) => script[nth - 1]?.(stored, nth);
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, 'c1', undefined, 'c3']);
  });

  test('that the machine cannot open is dropped, for another one', async () => {
    decide = (stored, nth) =>
      nth < 3
        ? challenges(() => annotation(`c${nth}`, nth === 1 ? unopenable : 'YmxvYg=='))(stored, nth)
        : issue(stored);
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered()).toEqual([undefined, undefined, 'c2']);
    expect(logged.join('\n')).toContain('the credential does not open');
  });

  test('costs no retry: a node that used all of them answers still', async () => {
    const invalid = no('Denied', 'AttestationInvalid');
    const script = [invalid, invalid, challenges(), invalid, challenges(), grant];
    decide = (stored, nth) => script[nth - 1]?.(stored, nth);
    expect(await ask()).toMatchObject({ kind: 'issued' });
  });

  test('after challenge is answered a few times, not for ever; then the node backs off and begins anew', async () => {
    decide = challenges();
    expect(await ask()).toMatchObject({ kind: 'refused', askAgainAt: now + 60_000 });
    expect(answered()).toEqual([undefined, 'c1', 'c2', 'c3']);
    now += 60_000;
    decide = (stored, nth) => (nth === 5 ? challenges()(stored, nth) : issue(stored));
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(answered().slice(4)).toEqual([undefined, 'c5']);
  });

  test.for([
    ['missing', undefined],
    ['not JSON', 'c1'],
    ['of another version', JSON.stringify({ v: 2, challenge: 'c1', credential: 'YmxvYg==' })],
    ['without a credential', JSON.stringify({ v: 1, challenge: 'c1' })],
    ['not base64', annotation('c1', 'a b')],
    ['of another alphabet', annotation('c+1')],
    ['oversized', annotation('c1', 'A'.repeat(5_000))],
  ] as const)('that is %s is a refusal, and the log says so', async ([, text]) => {
    decide = text === undefined ? no('Denied', 'AttestationChallenge') : challenges(() => text);
    expect(await ask()).toMatchObject({ kind: 'refused', askAgainAt: now + 60_000 });
    expect(created).toHaveLength(1);
    expect(logged.join('\n')).toContain('a challenge that this node cannot read');
  });

  test('is unknown to the work file of an earlier version, whose key is kept', async () => {
    decide = no('Denied', 'IdentityNotAllowed');
    await ask();
    const { challenges: none, ...earlier } = work() as { readonly challenges: number };
    expect(none).toBe(0);
    writeFileSync(join(folder.path, 'cache/client-next.json'), JSON.stringify(earlier));
    now += 60_000;
    decide = (stored, nth) => (nth === 2 ? challenges()(stored, nth) : issue(stored));
    expect(await ask()).toMatchObject({ kind: 'issued' });
    expect(keysSent().size).toBe(1);
  });

  test('is nothing that a provider without a TPM answers', async () => {
    answersChallenges = false;
    decide = challenges();
    expect(await ask()).toMatchObject({ kind: 'refused' });
    expect(created).toHaveLength(1);
  });
});
