/**
 * The calls that each way of a request may make, exactly. The suites here hold the running components to these numbers,
 * and docs/call-budget.md to these tables.
 */
import type { Counts } from './counted-world.ts';

export interface Row {
  readonly call: string;
  readonly times: number;
  /** Which guarantee would be lost without it. */
  readonly why: string;
}

export interface Way {
  readonly title: string;
  /** Ways of which it consists, whose calls are made besides. */
  readonly and?: readonly WayName[];
  readonly rows: readonly Row[];
}

const once = (call: string, why: string): Row => ({ call, times: 1, why });
const [api, endpoint, sign, attest] = ['API server', 'endpoint', 'DynamoDB of sign', 'DynamoDB of attest'];

const askSign = once(`${endpoint}: POST /sign`, 'the key is not in the cluster');
const writeCertificate = once(
  `${api}: update certificatesigningrequests/status`,
  'the certificate, or why there is none',
);
const openRecord = once(
  `${sign}: PutItem uid#`,
  'the intent, before the key is asked: one content per UID, whatever crashes',
);
const completeRecord = once(
  `${sign}: UpdateItem uid#`,
  'the certificate, before it is disclosed: the same one for every delivery',
);
const signature = once('KMS of sign: Sign', 'the signature');
const issued = [openRecord, signature, completeRecord];
const writeApproval = once(
  `${api}: update certificatesigningrequests/approval`,
  'the decision; the API server takes decisions and certificates at two places',
);
const tell = once(`${api}: create events`, 'the owner is told, by `kubectl describe`; never for a certificate');
const askAttest = once(`${endpoint}: POST /attest`, 'the deployed rules decide, while the evidence is fresh');
const readVerdict = once(
  `${sign}: GetItem verdict#`,
  'sign believes the record of these very bytes, no answer and no annotation',
);
const readIdentity = once(`${sign}: GetItem id#`, 'retired or reset since the verdict: no certificate');
const readNodeLock = once(
  `${sign}: GetItem lock#`,
  'an operator locked the node: no certificate, and none a second time; not read where a request concerns no node',
);
const readLocks = {
  ...readNodeLock,
  times: 2,
  why: 'an operator locked the node, or the machine of the verdict; at the same time as what else is read',
};
const judgedLock = once(
  `${attest}: GetItem lock#`,
  'an operator locked the node: not even an approval; at the same time as the verdict',
);
const standing = [readLocks, readVerdict, readIdentity];
const concludedBefore = once(
  `${attest}: BatchGetItem verdict# refused#`,
  'what was concluded stands, however old the evidence has grown; and who was refused too often waits',
);
const lookAtMachine = once(
  `${attest}: TransactGetItems id# lock# once# node#`,
  'machine, its lock, proof and name as they are at one moment; refuses before anybody else is asked',
);
const claim = once(
  `${attest}: TransactWriteItems verdict# once# id# node#`,
  'first use, spent proof and verdict: all of it or nothing',
);
const callerIdentity = once(
  'STS of attest: GetCallerIdentity',
  'only AWS can verify what a machine signed with its credentials',
);
const describeInstance = once(
  'EC2 of attest: DescribeInstances',
  'runs, and is whose it says, at this moment: not cached',
);
const concludeNo = once(
  `${attest}: TransactWriteItems verdict#`,
  'the same bytes get the same answer, whoever brings them',
);
const countNo = once(`${attest}: UpdateItem refused#`, 'bounds what one requester may have judged in vain');
const findRecord = once(
  `${sign}: PutItem uid#`,
  'its condition fails and brings the record: no read before it, none after',
);
const proven = [judgedLock, concludedBefore, lookAtMachine, callerIdentity, describeInstance, claim];

export type WayName = keyof typeof table;

/** What it costs to be there, whoever asks for what. */
const table = {
  start: {
    title: 'The relay starts, for each signer',
    rows: [
      once(`${api}: list certificatesigningrequests`, 'what is there; one call for each 500 requests'),
      once(`${api}: watch certificatesigningrequests`, 'what comes; from where the list was made'),
    ],
  },
  ended: {
    title: 'The API server ends a watch in good order (every 5 to 10 minutes)',
    rows: [once(`${api}: watch certificatesigningrequests`, 'goes on from the last event or bookmark; no list')],
  },
  expired: {
    title: 'The API server no longer knows where a watch was (410)',
    rows: [
      once(`${api}: watch certificatesigningrequests`, 'the one that is told so'),
      once(`${api}: list certificatesigningrequests`, 'only a list tells what was missed'),
      once(`${api}: watch certificatesigningrequests`, 'goes on from that list'),
    ],
  },
  cold: {
    title: 'Another environment of sign, once for each CA that it is asked for',
    rows: [
      { call: `${sign}: GetItem ca#`, times: 2, why: 'which certificate is this CA’s, and that certificate' },
      once('KMS of sign: GetPublicKey', 'certificate and key belong together, or nothing is signed'),
    ],
  },
  approved: {
    title: 'Approved by somebody else, nothing attested',
    rows: [askSign, ...issued, writeCertificate],
  },
  freshKey: {
    title: 'The same, where keys must be fresh',
    rows: [
      askSign,
      once(`${sign}: TransactWriteItems uid# spki#`, 'the intent and the mark of the key: all of it or nothing'),
      signature,
      completeRecord,
      writeCertificate,
    ],
  },
  pending: {
    title: 'Pending, approved by the relay; a node that renews likewise',
    and: ['approved'],
    rows: [
      once(`${api}: create subjectaccessreviews`, 'deleting a binding stops approvals, at once'),
      writeApproval,
      readNodeLock,
    ],
  },
  denied: {
    title: 'Pending, and against the profile',
    rows: [once(`${api}: create subjectaccessreviews`, 'who has no leave is not answered at all'), writeApproval, tell],
  },
  refused: {
    title: 'Approved by somebody else, and against the profile',
    rows: [
      askSign,
      once(`${sign}: GetItem uid#`, 'a policy never takes back what was issued: the record’s own answer stands'),
      writeCertificate,
      tell,
    ],
  },
  again: {
    title: 'Delivered again after it was issued',
    rows: [askSign, findRecord],
  },
  webhook: {
    title: 'Asked for by a webhook client, without the relay',
    rows: [askSign, ...issued],
  },
  webhookProxy: {
    title: 'Asked for by a webhook client through the relay’s proxy',
    rows: [
      once(`${api}: get certificatesigningrequests`, 'what gets signed is what is stored, not what was posted'),
      askSign,
      ...issued,
    ],
  },
  proved: {
    title: 'Pending with a proof, approved by the relay; a machine that renews likewise',
    rows: [askAttest, ...proven, writeApproval, askSign, ...standing, ...issued, writeCertificate],
  },
  provedByHand: {
    title: 'The same, where somebody else approves',
    rows: [askAttest, ...proven, askSign, ...standing, ...issued, writeCertificate],
  },
  serving: {
    title: 'A stock kubelet’s serving certificate, for the machine on record',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      once(`${attest}: TransactGetItems node#`, 'which machine has the name: nothing else says it'),
      once(`${attest}: TransactGetItems node# id#`, 'name and machine as they are at one moment'),
      describeInstance,
      once(`${attest}: TransactWriteItems verdict# id# node#`, 'use and verdict: all of it or nothing'),
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  judgedThere: {
    title: 'Pending, nothing attested, in a cluster that has attested signers',
    and: ['approved'],
    rows: [askAttest, writeApproval],
  },
  unfit: {
    title: 'Pending with evidence that does not hold, as one can see',
    rows: [askAttest, judgedLock, concludedBefore, concludeNo, countNo, writeApproval, tell],
  },
  disproved: {
    title: 'Pending with a proof that STS does not confirm',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      lookAtMachine,
      callerIdentity,
      concludeNo,
      countNo,
      writeApproval,
      tell,
    ],
  },
  provedWebhook: {
    title: 'With a proof, asked for by a webhook client that knows no attest',
    rows: [
      askSign,
      {
        ...readVerdict,
        times: 2,
        why: 'before attest is asked, since mostly there is one; and after, since only it counts',
      },
      once('Lambda of sign: Invoke attest', 'that client asks nobody else'),
      ...proven,
      readLocks,
      readIdentity,
      ...issued,
    ],
  },
  provedAgain: {
    title: 'With a proof, delivered again after it was issued',
    rows: [askSign, ...standing, findRecord],
  },
  inTree: {
    title: 'kube-controller-manager: approver and signer',
    rows: [once(`${api}: create subjectaccessreviews`, ''), writeApproval, writeCertificate],
  },
} as const satisfies Readonly<Record<string, Omit<Way, 'and'> & { readonly and?: readonly string[] }>>;

export const ways: Readonly<Record<WayName, Way>> = table;

/** Its own rows first; of a call that comes twice, one row. */
export function rowsOf(name: WayName): readonly Row[] {
  const { rows, and = [] } = ways[name];
  return [...rows, ...and.flatMap(rowsOf)];
}

/** What that many of these make, and nothing else. */
export function callsOf(...parts: readonly (readonly [WayName, number] | WayName)[]): Counts {
  const counts: Record<string, number> = {};
  for (const part of parts) {
    const [name, many] = typeof part === 'string' ? ([part, 1] as const) : part;
    for (const { call, times } of rowsOf(name)) counts[call] = (counts[call] ?? 0) + times * many;
  }
  return counts;
}

/** Of these the calls of DynamoDB and KMS, whichever function makes them. */
export function awsCallsOf(...parts: readonly WayName[]): Counts {
  const counts: Record<string, number> = {};
  for (const [call, many] of Object.entries(callsOf(...parts))) {
    const [, operation] = /^(?:DynamoDB|KMS) of \w+: (.*)$/.exec(call) ?? [];
    if (operation !== undefined) counts[operation] = (counts[operation] ?? 0) + many;
  }
  return counts;
}

/** As docs/call-budget.md has it between its marks. */
export function tableOf(name: WayName): string {
  const lines = rowsOf(name).map(({ call, times, why }) => `| ${times} | ${spoken(call)} | ${why} |`);
  return ['| calls | | why |', '|--:|---|---|', ...lines].join('\n');
}

const columns = ['API server', 'endpoint', 'DynamoDB', 'KMS', 'STS', 'EC2'] as const;

/** How many calls each way makes of whom. An invocation of attest by sign counts as one of the endpoint. */
export function summary(): string {
  const lines = Object.entries(ways).map(([name, { title }]) => {
    const sums = new Map<string, number>();
    for (const { call, times } of rowsOf(name as WayName)) {
      const [service = ''] = call.replace(/^Lambda/, 'endpoint').split(/: | of /);
      sums.set(service, (sums.get(service) ?? 0) + times);
    }
    return `| ${[title, ...columns.map((column) => sums.get(column) ?? '')].join(' | ')} |`;
  });
  return [`| | ${columns.join(' | ')} |`, `|---|${columns.map(() => '--:|').join('')}`, ...lines].join('\n');
}

/** `DynamoDB of attest: GetItem verdict#` → DynamoDB: `GetItem verdict#` (attest) */
function spoken(call: string): string {
  const [whom = '', what = ''] = call.split(': ');
  const [service = '', by] = whom.split(' of ');
  return `${service}: \`${what}\`${by === undefined ? '' : ` (${by})`}`;
}
