/**
 * The generated corpus: for every creatable signer, decision and kind of key a number of requests that differ in
 * everything else. A case says what it is made for; what the reference makes of it is measured, never assumed.
 */
import { makeRequest } from '../../harness/x509/requests.ts';
import type { RequestSpec, SanSpec, TestHash, TestKey } from '../../harness/x509/requests.ts';
import { corpusKeyKinds } from './keys.ts';
import type { KeyPool } from './keys.ts';
import { extensions, lifetimes, sans } from './names.ts';
import type { SanType } from './names.ts';
import type { Random } from './random.ts';
import { freeSubject, isNamed, nodeSubject } from './subjects.ts';
import type { Rdns } from './subjects.ts';

export const creatableSigners = [
  'kubernetes.io/kube-apiserver-client',
  'kubernetes.io/kube-apiserver-client-kubelet',
  'kubernetes.io/kubelet-serving',
] as const;
export type CreatableSigner = (typeof creatableSigners)[number];

/** Of every run that asks for no other, so that one failure can be looked at twice. */
export const defaultSeed = 20_260_503;

/** What is done to a request before the signers look at it. */
export type Fate = 'approved' | 'pending' | 'denied' | 'failed';

export interface CorpusCase {
  readonly name: string;
  readonly signerName: string;
  readonly keyKind: string;
  /** `issued`, `left alone`, or the message of the refusal. */
  readonly decision: string;
  readonly fate: Fate;
  /** spec.request, decoded: PEM text. */
  readonly request: Buffer;
  readonly usages: readonly string[];
  readonly expirationSeconds?: number;
}

/** How many requests for each signer × decision × key kind; of those left alone, so many for each fate. */
export interface CorpusSize {
  readonly issued: number;
  readonly refused: number;
  readonly leftAlone: number;
}

export function generateCorpus(random: Random, keys: KeyPool, size: CorpusSize, prefix = 'corpus'): CorpusCase[] {
  const cases: CorpusCase[] = [];
  for (const signerName of creatableSigners) {
    const { rules, draft } = signers[signerName];
    for (const keyKind of corpusKeyKinds) {
      const add = (decision: string, fate: Fate, made: Draft): void => {
        const name = `${prefix}-${String(cases.length).padStart(4, '0')}`;
        cases.push({ name, signerName, keyKind, decision, fate, ...finish(made, keys.take(keyKind, random), random) });
      };
      const good = (): Draft => withRules(draft(random), rules, rules.length, random);
      for (let count = size.issued; count > 0; count--) add('issued', 'approved', good());
      for (const [index, { message }] of rules.entries())
        for (let count = size.refused; count > 0; count--)
          add(message, 'approved', withRules(draft(random), rules, index, random));
      // Neither approved nor denied, denied, and approved though already failed: in each case perfectly signable.
      for (const fate of ['pending', 'denied', 'failed'] as const)
        for (let count = size.leftAlone; count > 0; count--) add('left alone', fate, good());
    }
  }
  return cases;
}

/** A request before it is encoded. */
interface Draft {
  readonly subject: Rdns | { readonly organizations: readonly string[]; readonly commonName: string };
  readonly sanTypes: readonly SanType[];
  readonly usages: readonly string[];
}

/** One rule of the reference, in its order: how to keep it, and how to break it. */
interface RulePlan {
  readonly message: string;
  readonly keep: (draft: Draft, random: Random) => Draft;
  readonly breaks: (draft: Draft, random: Random) => Draft;
}

/** Keeps the rules before `broken`, breaks that one, and takes those after it as they come: only the first may show. */
function withRules(draft: Draft, rules: readonly RulePlan[], broken: number, random: Random): Draft {
  return rules.reduce((made, rule, index) => {
    const breaks = index === broken || (index > broken && random.chance(0.3));
    return breaks ? rule.breaks(made, random) : rule.keep(made, random);
  }, draft);
}

const nodeNames = ['n1', 'ip-10-0-0-1.eu-central-1.compute.internal', 'worker-7', '0', `${'n'.repeat(63)}.example`];

const organizationRule: RulePlan = {
  message: 'subject organization is not system:nodes',
  keep: (draft) => withNode(draft, { organizations: ['system:nodes'] }),
  breaks: (draft, random) =>
    withNode(draft, {
      organizations: random.pick([
        [],
        ['system:node'],
        ['System:Nodes'],
        ['system:nodes', 'system:nodes'],
        ['system:nodes', 'others'],
        ['others', 'system:nodes'],
        ['system:masters'],
        ['Zoë'],
      ]),
    }),
};

const commonNameRule: RulePlan = {
  message: 'subject common name does not begin with system:node:',
  keep: (draft, random) => withNode(draft, { commonName: `system:node:${random.pick(nodeNames)}` }),
  breaks: (draft, random) =>
    withNode(draft, {
      commonName: random.pick([
        '',
        'n1',
        'system:node',
        'System:node:n1',
        'a-system:node:n1',
        'system:nodes:n1',
        'Zoë',
      ]),
    }),
};

function withNode(draft: Draft, change: { organizations?: readonly string[]; commonName?: string }): Draft {
  const identity = 'commonName' in draft.subject ? draft.subject : { organizations: [], commonName: '' };
  return { ...draft, subject: { ...identity, ...change } };
}

function noSans(type: SanType, label: string): RulePlan {
  return {
    message: `${label} subjectAltNames are not allowed`,
    keep: (draft) => ({ ...draft, sanTypes: draft.sanTypes.filter((other) => other !== type) }),
    breaks: (draft) => ({ ...draft, sanTypes: [...new Set([...draft.sanTypes, type])] }),
  };
}

const hostNameRule: RulePlan = {
  message: 'DNS or IP subjectAltName is required',
  keep: (draft, random) => ({
    ...draft,
    sanTypes: [...draft.sanTypes, ...random.pick<SanType[]>([['dns'], ['ip'], ['dns', 'ip']])],
  }),
  breaks: (draft) => ({ ...draft, sanTypes: draft.sanTypes.filter((type) => type !== 'dns' && type !== 'ip') }),
};

function exactUsages(purpose: 'client auth' | 'server auth'): RulePlan {
  const all = ['digital signature', 'key encipherment', purpose];
  return {
    message: `usages did not match [${all.toSorted().join(' ')}]`,
    keep: (draft, random) => ({
      ...draft,
      usages: random.shuffled(random.chance(0.5) ? all : ['digital signature', purpose]),
    }),
    breaks: (draft, random) => ({
      ...draft,
      usages: random.shuffled(
        random.pick([
          ['digital signature'],
          [purpose],
          ['digital signature', 'key encipherment'],
          ['key encipherment', purpose],
          ['signing', purpose], // means the same, and is another word
          [...all, random.pick(otherUsages.filter((usage) => usage !== purpose))],
          ['digital signature', 'client auth', 'server auth'],
          ['digital signature', purpose === 'client auth' ? 'server auth' : 'client auth'],
        ]),
      ),
    }),
  };
}

const otherUsages = [
  'signing',
  'content commitment',
  'data encipherment',
  'key agreement',
  'cert sign',
  'crl sign',
  'encipher only',
  'decipher only',
  'any',
  'server auth',
  'code signing',
  'email protection',
  's/mime',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'timestamping',
  'ocsp signing',
  'microsoft sgc',
  'netscape sgc',
];

const strangeUsageRule: RulePlan = {
  message: 'invalid usage for client certificate: ',
  keep: (draft, random) => ({ ...draft, usages: random.some(['digital signature', 'key encipherment'], 0, 2) }),
  breaks: (draft, random) => ({
    ...draft,
    usages: random.shuffled([
      ...random.some(otherUsages, 1, 3),
      ...random.some(['digital signature', 'key encipherment'], 0, 2),
    ]),
  }),
};

const clientAuthRule: RulePlan = {
  message: 'missing required usage for client certificate: client auth',
  keep: (draft, random) => ({ ...draft, usages: random.shuffled([...draft.usages, 'client auth']) }),
  // The API refuses a request without any usage.
  breaks: (draft) => (draft.usages.length > 0 ? draft : { ...draft, usages: ['key encipherment'] }),
};

/** For the signers that leave names free. */
export function freeSanTypes(subject: Rdns, random: Random): SanType[] {
  return isNamed(subject) && random.chance(0.5) ? [] : random.some(['dns', 'email', 'ip', 'uri'], 1, 4);
}

interface SignerPlan {
  /** In the order in which the reference checks them (pkg/apis/certificates/helpers.go, signer.go). */
  readonly rules: readonly RulePlan[];
  readonly draft: (random: Random) => Draft;
}

const node = { organizations: ['system:nodes'], commonName: 'system:node:n1' };

const signers: Readonly<Record<CreatableSigner, SignerPlan>> = {
  'kubernetes.io/kube-apiserver-client': {
    rules: [strangeUsageRule, clientAuthRule],
    draft: (random) => {
      const subject = freeSubject(random);
      return { subject, sanTypes: freeSanTypes(subject, random), usages: [] };
    },
  },
  'kubernetes.io/kube-apiserver-client-kubelet': {
    rules: [
      organizationRule,
      noSans('dns', 'DNS'),
      noSans('email', 'Email'),
      noSans('ip', 'IP'),
      noSans('uri', 'URI'),
      commonNameRule,
      exactUsages('client auth'),
    ],
    draft: () => ({ subject: node, sanTypes: [], usages: [] }),
  },
  'kubernetes.io/kubelet-serving': {
    rules: [
      organizationRule,
      hostNameRule,
      noSans('email', 'Email'),
      noSans('uri', 'URI'),
      exactUsages('server auth'),
      commonNameRule,
    ],
    draft: () => ({ subject: node, sanTypes: [], usages: [] }),
  },
};

/** Encodes and signs the draft, and varies what no rule looks at. */
function finish(
  draft: Draft,
  key: TestKey,
  random: Random,
): Pick<CorpusCase, 'request' | 'usages' | 'expirationSeconds'> {
  const subject =
    'commonName' in draft.subject
      ? nodeSubject(draft.subject.organizations, draft.subject.commonName, random)
      : draft.subject;
  const requested = sansOf(draft.sanTypes, random);
  const spec: RequestSpec = {
    key,
    subject,
    ...(requested === undefined ? {} : { sans: requested }),
    hash: random.pick<TestHash>(['sha256', 'sha256', 'sha384', 'sha512']),
    ...(key.kind.startsWith('RSA') && random.chance(0.2) ? { padding: 'pss' as const } : {}),
    extensions: extensions(random),
    ...(random.chance(0.1) ? { attributes: [challengePassword] } : {}),
  };
  const expirationSeconds = random.pick(lifetimes);
  return {
    request: textOf(makeRequest(spec).pem, random),
    usages: draft.usages,
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
  };
}

function sansOf(types: readonly SanType[], random: Random): SanSpec | undefined {
  // An extension without a name in it asks for nothing.
  if (types.length === 0) return random.chance(0.05) ? {} : undefined;
  return sans(types, random);
}

/** PKCS #9 challengePassword: an attribute that is no extension request. */
const challengePassword = Buffer.from('301006092a864886f70d0109073103130178', 'hex');

/** The line ends of other systems, a missing last one, and lines of another length. */
function textOf(pem: string, random: Random): Buffer {
  const text = random.pick([
    pem,
    pem,
    pem,
    pem,
    pem.replaceAll('\n', '\r\n'),
    pem.trimEnd(),
    `\n${pem}\n\n`,
    pem.replaceAll(/([A-Za-z0-9+/=]{64})\n(?!-)/g, '$1'),
  ]);
  return Buffer.from(text, 'latin1');
}

/** The grid in print: how many requests there are for each signer × decision × key kind. */
export function countOf(
  cases: readonly { signerName: string; decision: string; keyKind: string }[],
): Map<string, Map<string, number>> {
  const counts = new Map<string, Map<string, number>>();
  for (const { signerName, decision, keyKind } of cases) {
    const row = `${signerName}: ${decision}`;
    const columns = counts.get(row) ?? new Map<string, number>();
    columns.set(keyKind, (columns.get(keyKind) ?? 0) + 1);
    counts.set(row, columns);
  }
  return counts;
}
