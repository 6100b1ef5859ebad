/**
 * The calls that each way of a request may make, exactly. The suites here hold the running components to these numbers,
 * and docs/internals/call-budget.md to these tables.
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
  'the certificate, or the reason of the refusal',
);
const openRecord = once(
  `${sign}: PutItem uid#`,
  'the intent, before the key signs: one content per UID, also after a crash',
);
const completeRecord = once(
  `${sign}: UpdateItem uid#`,
  'the certificate, before it is disclosed: the same one for every delivery',
);
const signature = once('KMS of sign: Sign', 'the signature');
const issued = [openRecord, signature, completeRecord];
const writeApproval = once(
  `${api}: update certificatesigningrequests/approval`,
  'the decision; the API server has separate subresources for decisions and certificates',
);
const tell = once(`${api}: create events`, 'shows the refusal in `kubectl describe`; none for a certificate');
const askAttest = once(`${endpoint}: POST /attest`, 'the deployed rules decide, while the evidence is fresh');
const readVerdict = once(
  `${sign}: GetItem verdict#`,
  'sign trusts only the stored verdict about these bytes, no answer and no annotation',
);
const readIdentity = once(
  `${sign}: GetItem id#`,
  'no certificate if the machine was retired or reset since the verdict',
);
const readNodeLock = once(
  `${sign}: GetItem lock#`,
  'the lock of the node: no certificate, also no issued one; not read if a request concerns no node',
);
const readKeyLock = once(`${sign}: GetItem lock#`, 'the lock of the key: a revoked key gets no new certificate');
const readLocks = {
  ...readNodeLock,
  times: 3,
  why: 'the locks of the key, of the node and of the verdict’s machine, read in parallel with the rest',
};
const judgedKeyLock = once(`${attest}: GetItem lock#`, 'the lock of the key, read in parallel with the verdict');
const judgedLock = {
  ...judgedKeyLock,
  times: 2,
  why: 'the locks of the key and of the node, read in parallel with the verdict',
};
const standing = [readLocks, readVerdict, readIdentity];
const concludedBefore = once(
  `${attest}: BatchGetItem verdict# refused#`,
  'an earlier verdict stands, even if its evidence is old by now; and the count of this requester’s refusals',
);
const lookAtMachine = once(
  `${attest}: TransactGetItems id# lock# once# node#`,
  'machine, lock, proof and name, as of one moment; can refuse before any call of AWS',
);
const claim = once(
  `${attest}: TransactWriteItems verdict# once# id# node#`,
  'first use, spent proof and verdict in one transaction',
);
const callerIdentity = once(
  'STS of attest: GetCallerIdentity',
  'only AWS can verify a signature of the machine’s credentials',
);
const describeInstance = once(
  'EC2 of attest: DescribeInstances',
  'the instance runs, and its account, network and tags; not cached',
);
const holderOfName = once(`${attest}: TransactGetItems node#`, 'the machine that has the node name');
const nameAndMachine = once(`${attest}: TransactGetItems node# id#`, 'name and machine, as of one moment');
const useAndVerdict = once(`${attest}: TransactWriteItems verdict# id# node#`, 'use and verdict in one transaction');
const useOfListed = once(
  `${attest}: TransactWriteItems verdict# machine# id# node#`,
  'use and verdict in one transaction, if the machine is still on the list',
);
const lookAtTpm = once(
  `${attest}: TransactGetItems id# lock# machine# machine# node#`,
  'machine, lock, list and name, as of one moment; can refuse before any other call',
);
const listedAs = once(`${attest}: GetItem machine#`, 'what the operator’s list says: node name, addresses, DNS names');
const concludeNo = once(
  `${attest}: TransactWriteItems verdict#`,
  'the same bytes get the same answer from every requester',
);
const countNo = once(`${attest}: UpdateItem refused#`, 'counts the refusals of this requester, which are limited');
const findRecord = once(`${sign}: PutItem uid#`, 'its condition fails and returns the record, so no read is needed');
const proven = [judgedLock, concludedBefore, lookAtMachine, callerIdentity, describeInstance, claim];

export type WayName = keyof typeof table;

/** The paths of a request, each with its calls. */
const table = {
  start: {
    title: 'The relay starts, for each signer',
    rows: [
      once(`${api}: list certificatesigningrequests`, 'the requests that exist; one call for each 500 requests'),
      once(`${api}: watch certificatesigningrequests`, 'the changes after the list'),
    ],
  },
  ended: {
    title: 'The API server ends a watch normally (every 5 to 10 minutes)',
    rows: [
      once(`${api}: watch certificatesigningrequests`, 'continues from the last event or bookmark, without a list'),
    ],
  },
  expired: {
    title: 'The API server no longer has the resourceVersion of a watch (410)',
    rows: [
      once(`${api}: watch certificatesigningrequests`, 'the call that gets the 410'),
      once(`${api}: list certificatesigningrequests`, 'only a list shows the missed changes'),
      once(`${api}: watch certificatesigningrequests`, 'continues from that list'),
    ],
  },
  cold: {
    title: 'A new environment of sign, once for each CA that it uses',
    rows: [
      { call: `${sign}: GetItem ca#`, times: 2, why: 'the serial of this CA’s certificate, and the certificate' },
      once('KMS of sign: GetPublicKey', 'nothing is signed unless certificate and key belong together'),
    ],
  },
  approved: {
    title: 'Another approver, no attestation',
    rows: [askSign, readKeyLock, ...issued, writeCertificate],
  },
  freshKey: {
    title: 'The same, where keys must be fresh',
    rows: [
      askSign,
      readKeyLock,
      once(`${sign}: TransactWriteItems uid# spki#`, 'the intent and the mark of the key in one transaction'),
      signature,
      completeRecord,
      writeCertificate,
    ],
  },
  pending: {
    title: 'Pending, the relay approves; also a node that renews',
    and: ['approved'],
    rows: [
      once(`${api}: create subjectaccessreviews`, 'deleting a role binding stops approvals at once'),
      writeApproval,
      readNodeLock,
    ],
  },
  denied: {
    title: 'Pending, the profile refuses',
    rows: [
      once(`${api}: create subjectaccessreviews`, 'a requester without the permission gets no answer'),
      writeApproval,
      tell,
    ],
  },
  refused: {
    title: 'Another approver, the profile refuses',
    rows: [
      askSign,
      readKeyLock,
      once(`${sign}: GetItem uid#`, 'an issued certificate is returned even if today’s policy refuses the request'),
      writeCertificate,
      tell,
    ],
  },
  again: {
    title: 'A second delivery after the certificate was issued',
    rows: [askSign, readKeyLock, findRecord],
  },
  webhook: {
    title: 'A webhook client, without the relay',
    rows: [askSign, readKeyLock, ...issued],
  },
  webhookProxy: {
    title: 'A webhook client through the relay’s proxy',
    rows: [
      once(`${api}: get certificatesigningrequests`, 'the stored object is signed, not the posted one'),
      askSign,
      readKeyLock,
      ...issued,
    ],
  },
  proved: {
    title: 'Pending with evidence, the relay approves; also a machine that renews',
    rows: [askAttest, ...proven, writeApproval, askSign, ...standing, ...issued, writeCertificate],
  },
  provedByHand: {
    title: 'The same, with another approver',
    rows: [askAttest, ...proven, askSign, ...standing, ...issued, writeCertificate],
  },
  servingSeen: {
    title: 'A stock kubelet’s serving certificate, within two minutes after the client certificate',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      holderOfName,
      nameAndMachine,
      useAndVerdict,
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  serving: {
    title: 'The same later, or for an address that the machine did not have then',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      holderOfName,
      nameAndMachine,
      describeInstance,
      useAndVerdict,
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  challenged: {
    title: 'A TPM that is not on record gets a challenge',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      lookAtTpm,
      listedAs,
      once('KMS of attest: GenerateMac', 'the secret of the challenge, which is stored nowhere'),
      once(`${attest}: TransactWriteItems verdict#`, 'the same bytes get the same challenge; nothing else is recorded'),
      writeApproval,
      tell,
    ],
  },
  activated: {
    title: 'It answers the challenge: first use of a machine with a TPM',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      once(`${attest}: TransactGetItems id# lock# once# machine# machine# node#`, lookAtTpm.why),
      listedAs,
      once('KMS of attest: GenerateMac', 'the secret again, to compare the answer with'),
      once(
        `${attest}: TransactWriteItems verdict# once# machine# id# node#`,
        'first use, spent challenge and verdict in one transaction, if the machine is still on the list',
      ),
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  quoted: {
    title: 'A machine with a TPM renews: a quote is enough',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      lookAtTpm,
      listedAs,
      useOfListed,
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  listedServing: {
    title: 'A stock kubelet’s serving certificate, for a machine with a TPM',
    rows: [
      askAttest,
      judgedLock,
      concludedBefore,
      holderOfName,
      nameAndMachine,
      listedAs,
      useOfListed,
      writeApproval,
      askSign,
      ...standing,
      ...issued,
      writeCertificate,
    ],
  },
  judgedThere: {
    title: 'Pending, no attestation, in a cluster with attested signers',
    and: ['approved'],
    rows: [askAttest, judgedKeyLock, writeApproval],
  },
  unfit: {
    title: 'Pending with evidence that is invalid by itself',
    rows: [askAttest, judgedLock, concludedBefore, concludeNo, countNo, writeApproval, tell],
  },
  disproved: {
    title: 'Pending with evidence that STS does not confirm',
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
    title: 'With evidence, a webhook client that does not call attest',
    rows: [
      askSign,
      {
        ...readVerdict,
        times: 2,
        why: 'before attest is called, because there usually is one; and after, because only the stored verdict counts',
      },
      once('Lambda of sign: Invoke attest', 'this client does not call attest'),
      ...proven,
      readLocks,
      readIdentity,
      ...issued,
    ],
  },
  provedAgain: {
    title: 'With evidence, a second delivery after the certificate was issued',
    rows: [askSign, ...standing, findRecord],
  },
  inTree: {
    title: 'kube-controller-manager: approver and signer',
    rows: [once(`${api}: create subjectaccessreviews`, ''), writeApproval, writeCertificate],
  },
} as const satisfies Readonly<Record<string, Omit<Way, 'and'> & { readonly and?: readonly string[] }>>;

export const ways: Readonly<Record<WayName, Way>> = table;

/** Its own rows first; of a call that comes twice, one row. */
function rowsOf(name: WayName): readonly Row[] {
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

/** As docs/internals/call-budget.md has it between its marks. */
export function tableOf(name: WayName): string {
  const lines = rowsOf(name).map(({ call, times, why }) => `| ${times} | ${spoken(call)} | ${why} |`);
  return ['| calls | | why |', '|--:|---|---|', ...lines].join('\n');
}

const columns = ['API server', 'endpoint', 'DynamoDB', 'KMS', 'STS', 'EC2'] as const;

/** How many calls each way makes to each service. An invocation of attest by sign counts as one of the endpoint. */
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
  const [callee = '', what = ''] = call.split(': ');
  const [service = '', by] = callee.split(' of ');
  return `${service}: \`${what}\`${by === undefined ? '' : ` (${by})`}`;
}
