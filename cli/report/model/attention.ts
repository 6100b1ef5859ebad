/** What needs an operator: today, or soon. */
import { counted } from '../../../core/outcome/counted.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import type { CaRow, TrustRow } from './cas.ts';
import type { Facts } from './facts.ts';
import { attentionCodes } from './attention-codes.ts';
import type { Attention } from './attention-codes.ts';
import type { Standing } from './nodes.ts';
import type { Report } from './shape.ts';
import type { RequestRow } from './requests.ts';

const minute = 60_000;
const day = 86_400_000;
/** The default of alarms.caDaysLeft. */
const caWarnDays = 90;
const caActDays = 30;
/** The relay answers within seconds. */
const patience = 10 * minute;

type Known = Omit<Report, 'attention'>;

export function attentionOf(known: Known, facts: Facts): readonly Attention[] {
  const { at } = facts;
  const found = [
    ...cas(known.cas, at),
    ...trust(known.trust),
    ...nodes(known, facts),
    ...requests(known, at),
    ...records(known),
    ...parts(known),
  ];
  // The order of the code list within each level.
  const rank = ({ level, code }: Attention): number => (level === 'act' ? 0 : 100) + attentionCodes.indexOf(code);
  return found.toSorted((a, b) => rank(a) - rank(b));
}

function cas(rows: readonly CaRow[], at: Instant): readonly Attention[] {
  return rows.flatMap(({ name, fault, notAfter }): readonly Attention[] => {
    const about = { section: 'cas' } as const;
    if (notAfter === undefined)
      return [
        {
          ...about,
          level: 'act',
          code: 'CaNotInForce',
          text: `CA ${name} is not in force: ${fault ?? ''}`,
          advice: 'Nothing is signed for its signers: countersign ca show tells what is missing.',
        },
      ];
    const days = Math.floor((Date.parse(notAfter) - at) / day);
    if (days >= caWarnDays) return [];
    const ended = Date.parse(notAfter) <= at;
    return [
      {
        ...about,
        level: days < caActDays ? 'act' : 'watch',
        code: ended ? 'CaEnded' : 'CaEndsSoon',
        text: ended ? `CA ${name} ended at ${notAfter}` : `CA ${name} ends in ${counted(days, 'day')}`,
        advice: `Replace it: countersign ca rotate --name ${name} shows the next step.`,
      },
    ];
  });
}

function trust(rows: readonly TrustRow[]): readonly Attention[] {
  return rows.flatMap(({ name, place, cas: trusted }) =>
    Object.entries(trusted).flatMap(([ca, state]): readonly Attention[] =>
      state !== 'needed'
        ? []
        : [
            {
              level: 'act',
              code: 'CaNotTrusted',
              text: `${name} does not trust CA ${ca}`,
              advice: `It refuses the certificates of that CA (${place}).`,
              section: 'cas',
            },
          ],
    ),
  );
}

/** Nothing to say of nothing. `names`: of all that it means, for the examples. */
function about(
  names: readonly string[],
  sentence: (amount: number, one: boolean) => string,
  attention: Omit<Attention, 'text' | 'examples'>,
): readonly Attention[] {
  if (names.length === 0) return [];
  const distinct = [...new Set(names)].filter((name) => name !== '');
  const examples = distinct.length > 3 ? [...distinct.slice(0, 3), '…'] : distinct;
  return [{ ...attention, text: sentence(names.length, names.length === 1), examples }];
}

function nodes({ fleet }: Known, facts: Facts): readonly Attention[] {
  const isRead = facts.nodes.state === 'read';
  const level = isRead ? 'act' : 'watch';
  const gone = isRead ? '' : ' Nodes that left the cluster are among them: --kubeconfig tells them apart.';
  const of = (standing: Standing): readonly string[] =>
    fleet.filter((row) => row.standing === standing).map(({ node }) => node);
  const has = (what: string) => (amount: number, one: boolean) =>
    `${counted(amount, 'node')} ${one ? 'has' : 'have'} ${what}`;
  return [
    ...about(of('ended'), has('a certificate that ended'), {
      level,
      code: 'NodeEnded',
      advice: `A kubelet cannot log in with it. Look at the requests of the node and at the log of its kubelet.${gone}`,
      section: 'nodes',
      standing: 'ended',
    }),
    ...about(of('late'), has('a certificate that was not renewed in time'), {
      level,
      code: 'NodeLate',
      advice: `A kubelet renews before 90 % of the lifetime. Look at the requests of the node and at the log of its kubelet.${gone}`,
      section: 'nodes',
      standing: 'late',
    }),
    ...about(of('none'), has('no certificate in the ledger'), {
      level: 'watch',
      code: 'NodeWithoutCertificate',
      advice: 'Another signer issued its certificate, or it ended more than seven days ago.',
      section: 'nodes',
      standing: 'none',
    }),
  ];
}

function requests({ requests: rows }: Known, at: Instant): readonly Attention[] {
  const isOpen = ({ state }: RequestRow): boolean => state === 'pending' || state === 'approved';
  const namesOf = (those: readonly RequestRow[]) => those.map(({ name, subject }) => name ?? subject);
  const waiting = rows.filter((row) => isOpen(row) && at - Date.parse(row.since) > patience);
  const refused = rows.filter((row) => !isOpen(row));
  return [
    ...about(
      namesOf(waiting),
      (amount, one) => `${counted(amount, 'request')} ${one ? 'waits' : 'wait'} for more than ten minutes`,
      {
        level: 'act',
        code: 'RequestWaits',
        advice: 'Approve or deny those of manual signers. For the others countersign trace shows where the request is.',
        section: 'requests',
      },
    ),
    ...about(namesOf(refused), (amount, one) => `${counted(amount, 'request')} ${one ? 'was' : 'were'} refused`, {
      level: 'watch',
      code: 'RequestRefused',
      advice: 'Each row has its reason; countersign csr explain shows all rules.',
      section: 'requests',
    }),
  ];
}

function records({ conflicts, machines, rows = [] }: Known): readonly Attention[] {
  const unknown = machines?.unknown ?? [];
  const failing = new Set(rows.filter(({ wouldBe }) => wouldBe !== 'approved').map(({ node }) => node));
  return [
    ...about(
      conflicts.map(({ node }) => node),
      (amount) => `${counted(amount, 'first-use conflict')} in the last 25 hours`,
      {
        level: 'act',
        code: 'FirstUseConflict',
        advice:
          'The refused machine may be an attacker. Find out which machine is the right one before countersign tofu reset.',
        section: 'machines',
      },
    ),
    ...about(
      unknown.map(({ node }) => node),
      (amount, one) =>
        `${counted(amount, 'machine')} on record ${one ? 'is' : 'are'} terminated or unknown to the platform`,
      {
        level: 'watch',
        code: 'MachineUnknown',
        advice: 'After a second look another machine may take the node name.',
        section: 'machines',
      },
    ),
    ...about([...failing], (amount) => `${counted(amount, 'node')} would be refused if audit mode ended today`, {
      level: 'watch',
      code: 'EnforcingWouldRefuse',
      advice: 'Resolve each row before you remove mode: audit.',
      section: 'audit',
    }),
  ];
}

function parts({ parts: all }: Known): readonly Attention[] {
  return all.flatMap(({ state, title, why = '' }): readonly Attention[] =>
    state !== 'failed'
      ? []
      : [{ level: 'watch', code: 'NotRead', text: `Not read: ${title}`, advice: why, section: 'sources' }],
  );
}
