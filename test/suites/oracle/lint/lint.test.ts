/**
 * zlint (RFC rules) and pkilint on everything we issue: CA certificates and clean leaves without a word, all others
 * with nothing but what the request itself is the cause of, and never with more than the reference's own certificate.
 */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { embeddedSigner, generateKey, publicKeyInfo } from '../../../../adapters/embedded/signer.ts';
import { issueCaCertificate } from '../../../../core/ca/issue-ca-certificate.ts';
import { caValidity } from '../../../../core/x509/ca-certificate.ts';
import type { CaSubject } from '../../../../core/x509/ca-certificate.ts';
import type { KeySpec } from '../../../../core/configuration/schema/cluster.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { serialFrom, serialOctets } from '../../../../core/x509/validity.ts';
import { ourSigner } from '../../../corpus/ask.ts';
import type { CorpusAuthority } from '../../../corpus/authority.ts';
import { clockOf, readRecording, recordedAuthority, settings } from '../../../corpus/reference.ts';
import type { Setting } from '../../../corpus/reference.ts';
import { answerOf, objectOf } from '../../../corpus/replay.ts';
import { defaultSeed, generateCorpus } from '../../../corpus/requests/cases.ts';
import { namesOfNoNode } from '../../../corpus/requests/names.ts';
import { corpusKeyKinds, createKeyPool } from '../../../corpus/requests/keys.ts';
import { generateLegacyCorpus } from '../../../corpus/requests/legacy.ts';
import { seededRandom } from '../../../corpus/requests/random.ts';
import { lintCertificates } from '../../../harness/x509/lint-tools.ts';
import type { LintReport } from '../../../harness/x509/lint-tools.ts';
import { makeRequest, pemBlock } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { allowed } from './allowed.ts';
import type { Asked } from './allowed.ts';

const { skip } = await requireTools('zlint', 'pkilint');

interface Leaf extends Asked {
  readonly certificatePem: string;
  readonly issuerPem: string;
  /** Of the same request by the reference. */
  readonly referencePem?: string;
}

const caForms: readonly (readonly [KeySpec, CaSubject, number | undefined])[] = [
  ['P-256', { commonName: 'kubernetes' }, 0],
  ['P-384', { commonName: 'Größte CA', organization: 'Example & Söhne', organizationalUnit: 'ops', country: 'DE' }, 1],
  ['P-521', { commonName: 'kubernetes', organization: 'Example' }, undefined],
  ['RSA-2048', { commonName: 'x'.repeat(64) }, 0],
  ['RSA-3072', { commonName: 'kubernetes' }, 0],
  ['RSA-4096', { commonName: 'kubernetes' }, 10],
];

describe.skipIf(skip)('the linters have nothing against', () => {
  const now = Math.floor(Date.now() / 1000);
  let leaves: Leaf[];
  let reports: LintReport[];
  let referenceReports: LintReport[];
  let cas: CorpusAuthority[];
  let caReports: LintReport[];

  beforeAll(async () => {
    cas = await Promise.all(caForms.map(([spec, subject, pathLength]) => newCa(spec, subject, pathLength, now)));
    leaves = [...(await recordedLeaves()), ...(await issueEach(newRequests(), cas, now))];
    const references = leaves.flatMap(({ referencePem, issuerPem }) =>
      referencePem === undefined ? [] : [{ certificatePem: referencePem, issuerPem }],
    );
    // All at once: starting a linter takes longer than linting.
    const all = await lintCertificates([...cas, ...leaves, ...references]);
    caReports = all.slice(0, cas.length);
    reports = all.slice(cas.length, cas.length + leaves.length);
    referenceReports = all.slice(cas.length + leaves.length);
  });

  test('the CA certificates', () => {
    expect(caReports.map(({ findings }) => findings)).toEqual(caForms.map(() => []));
  });

  test('leaves whose requests are clean', () => {
    const clean = leaves.flatMap((leaf, index) => (allowed.some(({ when }) => when(leaf)) ? [] : [reports[index]!]));
    console.log(`lint: ${leaves.length} leaves, ${clean.length} of them of clean requests, ${cas.length} CAs`);
    expect(clean.flatMap(({ findings }) => findings)).toEqual([]);
    expect(clean.length).toBeGreaterThanOrEqual(100);
  });

  test('the others, but for what their requests are the cause of', () => {
    const unexpected = reports.flatMap(({ findings }, index) =>
      findings.filter(
        ({ tool, lint }) => !allowed.some((entry) => entry.lint === `${tool} ${lint}` && entry.when(leaves[index]!)),
      ),
    );
    expect(unexpected).toEqual([]);
  });

  test('the list of causes has no entry that does not occur', () => {
    const unused = allowed.filter(
      ({ lint: name, when }) =>
        !reports.some(
          ({ findings }, index) =>
            when(leaves[index]!) && findings.some(({ tool, lint }) => `${tool} ${lint}` === name),
        ),
    );
    expect(unused.map(({ lint, cause }) => `${lint}: ${cause}`)).toEqual([]);
  });

  test('any leaf that they have not against that of the reference', () => {
    const compared = leaves.flatMap(({ referencePem }, index) => (referencePem === undefined ? [] : [reports[index]!]));
    const differences = compared.map((report, index) => {
      const [ours, theirs] = [namesOf(report), namesOf(referenceReports[index]!)];
      return { more: without(ours, theirs), less: without(theirs, ours).toSorted() };
    });
    // Deviation 1: what they have against all of the reference's is gone.
    const less = [
      'pkilint pkix.certificate_skid_end_entity_missing',
      'zlint w_ext_subject_key_identifier_missing_sub_cert',
    ];
    expect(differences).toEqual(compared.map(() => ({ more: [], less })));
    expect(compared.length).toBeGreaterThanOrEqual(100);
  });
});

function namesOf({ findings }: LintReport): string[] {
  return [...new Set(findings.map(({ tool, lint }) => `${tool} ${lint}`))];
}

function without(names: readonly string[], others: readonly string[]): string[] {
  return names.filter((name) => !others.includes(name));
}

async function newCa(
  spec: KeySpec,
  subject: CaSubject,
  pathLength: number | undefined,
  now: number,
): Promise<CorpusAuthority> {
  const key = await generateKey(spec);
  const signer = embeddedSigner(key);
  const template = {
    subject,
    spki: publicKeyInfo(key),
    serial: serialFrom(randomBytes(serialOctets)),
    ...caValidity(now * 1000, 3650 * 86_400),
    pathLength,
  };
  const certificate = Buffer.from(await issueCaCertificate(template, signer));
  return { key, keyPem: '', certificate, certificatePem: pemBlock('CERTIFICATE', certificate) };
}

/** Ours again, at the recorded time, beside what the reference issued then. */
async function recordedLeaves(): Promise<Leaf[]> {
  const recording = readRecording();
  const leaves: Leaf[] = [];
  for (const setting of Object.keys(settings) as Setting[]) {
    const authority = recordedAuthority(recording, setting);
    const signer = ourSigner(authority, { ...settings[setting], allowReservedSans: namesOfNoNode });
    for (const [index, recorded] of recording.cases.entries()) {
      const { certificate } = recorded;
      if (recorded.setting !== setting || certificate === undefined) continue;
      const said = await signer.ask(objectOf(recorded, index), clockOf(answerOf(recorded), 0));
      if (said.kind !== 'issued') throw new Error(`recorded case ${index}: ${JSON.stringify(said)}`);
      leaves.push({
        ...asked(Buffer.from(recorded.request, 'base64'), recorded.usages),
        certificatePem: said.certificatePem,
        issuerPem: authority.certificatePem,
        referencePem: pemBlock('CERTIFICATE', Buffer.from(certificate, 'base64')),
      });
    }
    signer.close();
  }
  return leaves;
}

interface Request {
  readonly signerName: string;
  readonly request: Buffer;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
}

/** What the oracle accepted, and ordinary requests for keys of every kind. */
function newRequests(): Request[] {
  const random = seededRandom(defaultSeed);
  const keys = createKeyPool();
  const corpus = generateCorpus(random, keys, { issued: 6, refused: 0, leftAlone: 0 });
  const legacy = generateLegacyCorpus(random, keys, 6);
  const ordinary = corpusKeyKinds.flatMap((kind) =>
    ordinaryForms(kind.startsWith('RSA')).map(([signer, spec, ...usages]) => ({
      signerName: `kubernetes.io/${signer}`,
      request: makeRequest({ ...spec, key: keys.take(kind, random) }).bytes,
      usages,
    })),
  );
  const provoking = provokingForms().map(([spec, ...usages]) => ({
    signerName: 'kubernetes.io/legacy-unknown',
    request: makeRequest({ subject: { CN: 'x' }, ...spec }).bytes,
    usages: usages.length === 0 ? ['client auth'] : usages,
  }));
  return [...corpus, ...legacy, ...ordinary, ...provoking];
}

/** Each cause of the list at least once, whatever chance put into the corpus. */
function provokingForms(): (readonly [spec: RequestSpec, ...usages: string[]])[] {
  const long = 'x'.repeat(129);
  const subjects = [{ CN: long }, { O: long }, { OU: long }, { L: long }, { ST: long }, { street: long }, { OU: '' }];
  const others = [{ O: ['a', 'b'] }, { C: 'Germany' }, { C: 'Zoë' }];
  const dns = ['n1', 'trailing.dot.', `${'l'.repeat(64)}.example`, 'long.'.repeat(60), 'a_b.example', '-a-.example'];
  const email = ['no-at-sign', '<alice@example.com>'];
  const uri = ['urn:a:b', 'file:///etc/hosts'];
  return [
    ...[...subjects, ...others].map((subject) => [{ subject }] as const),
    ...dns.map((name) => [{ sans: { dns: [name] } }] as const),
    ...email.map((name) => [{ sans: { email: [name] } }] as const),
    ...uri.map((name) => [{ sans: { uri: [name] } }] as const),
    [{ key: 'P-256' }, 'key encipherment'],
    [{ key: 'Ed25519' }, 'key agreement'],
    [{ key: 'RSA-2048' }, 'key agreement'],
    [{ key: 'P-256' }, 'code signing', 'key agreement'],
    [{ key: 'P-256' }, 'cert sign'],
    [{ key: 'P-256' }, 'timestamping', 'digital signature'],
    [{ key: 'P-256' }, 'key agreement', 'encipher only', 'decipher only'],
  ];
}

function ordinaryForms(rsa: boolean): (readonly [signer: string, spec: RequestSpec, ...usages: string[]])[] {
  const node = { O: 'system:nodes', CN: 'system:node:ip-10-0-0-1.ec2.internal' };
  const dns = ['ip-10-0-0-1.ec2.internal', 'node.example.com'];
  const encipherment = rsa ? ['key encipherment'] : [];
  return [
    ['kube-apiserver-client-kubelet', { subject: node }, 'digital signature', 'client auth'],
    [
      'kubelet-serving',
      { subject: node, sans: { dns, ip: ['10.0.0.1', 'fd00::1'] } },
      'digital signature',
      'server auth',
    ],
    [
      'kubelet-serving',
      { subject: node, sans: { ip: ['10.0.0.1'] } },
      'digital signature',
      ...encipherment,
      'server auth',
    ],
    ['kube-apiserver-client', { subject: { O: 'developers', CN: 'alice' } }, 'client auth'],
    [
      'kube-apiserver-client',
      { subject: { CN: 'Zoë' }, sans: { email: ['zoe@example.com'] } },
      'digital signature',
      'client auth',
    ],
    ['kube-apiserver-client', { subject: [], sans: { uri: ['https://example.com/robots/7'] } }, 'client auth'],
    [
      'legacy-unknown',
      { subject: { C: 'DE', ST: 'Bayern', L: 'München', O: 'a', OU: 'b', CN: 'web' }, sans: { dns } },
      'digital signature',
      'server auth',
      'client auth',
    ],
  ];
}

/** By each CA in turn. */
async function issueEach(requests: readonly Request[], cas: readonly CorpusAuthority[], now: number): Promise<Leaf[]> {
  const signers = cas.map((ca) => ourSigner(ca, { ...settings.main, allowReservedSans: namesOfNoNode }));
  const leaves: Leaf[] = [];
  for (const [index, { request, ...rest }] of requests.entries()) {
    const turn = index % cas.length;
    const recorded = { ...rest, request: request.toString('base64'), conditions: ['Approved'] };
    const said = await signers[turn]!.ask(objectOf(recorded, index), now);
    if (said.kind !== 'issued') throw new Error(`${JSON.stringify(rest)}: ${JSON.stringify(said)}`);
    const { certificatePem } = said;
    leaves.push({ ...asked(request, rest.usages), certificatePem, issuerPem: cas[turn]!.certificatePem });
  }
  for (const signer of signers) signer.close();
  return leaves;
}

function asked(request: Buffer, usages: readonly string[]): Asked {
  const decoded = decodeRequest(request);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.problem));
  return { request: decoded.value, usages };
}
