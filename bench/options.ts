import { parseArgs } from 'node:util';
import { contenderNames } from './contenders.ts';
import type { ContenderName } from './contenders.ts';

/** What is measured beside the contenders. */
export const sectionNames = ['approval', 'memory', 'steps', 'bundles', 'authenticator'] as const;
export type SectionName = (typeof sectionNames)[number];

export interface BenchOptions {
  readonly quick: boolean;
  readonly requests: number;
  readonly contenders: readonly ContenderName[];
  readonly sections: ReadonlySet<SectionName>;
  /** Whether contenders or sections were named: then those are all. */
  readonly chosen: boolean;
  /** Where the results go; by default bench/results/<date>.json. */
  readonly json: string | undefined;
  readonly compare: string | undefined;
  readonly profile: string | undefined;
  readonly patienceSeconds: number;
}

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: BenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

/** What fits into a minute, and says most about a change of our own code. */
const quickContenders: readonly ContenderName[] = ['countersign', 'kcm-unthrottled', 'kcm-default'];
const quickSections: readonly SectionName[] = ['approval', 'steps'];

const names: readonly string[] = [...contenderNames, ...sectionNames];

export const helpText = `Measures how fast requests get their certificates: Countersign beside the real kube-controller-manager, on one real
control plane; approved and pending ones, at once, at a steady rate and one by one; what the relay takes in a large
cluster; each step of the story by itself; the functions' bundles beside the bare libraries they need; and
kubelet-authenticator beside a Node that does nothing. Takes a quarter of an hour, most of it LocalStack, the large
clusters and the reference's own throttle. What fails does not keep the rest from being reported and written.

Usage: npm run bench -- [options]

  --quick            in a minute: 200 requests at once, 50 a second for five seconds and 50 one by one; 100 pending ones
                     with proof; the steps. Of the default kube-controller-manager only 100 at once. Without the one
                     process, LocalStack, backlogs, the burst of five times as many, the relay's memory, bundles and
                     authenticator; --only has most of these measured, if on less
  --requests N       requests of a burst, and of backlog and approval, 100 to 5000 (default: 1000); a second burst has
                     five times as many
  --only NAME        this contender or section only; repeat it for more
                     (contenders: ${contenderNames.join(', ')};
                     sections: ${sectionNames.join(', ')};
                     approval is of all contenders unless some are named too)
  --json FILE        write the results there (default: bench/results/<date and time>.json)
  --compare FILE     also print how this run relates to an earlier one's results
  --patience S       on a machine with other work: before each measurement wait up to S seconds for a quiet moment,
                     and measure a contender again, twice at most, when others took part of the machine after all
  --profile DIR      write a CPU profile of each Countersign process there, as .cpuprofile (open it in Chrome's DevTools)
                     and as folded stacks (.folded, for flame graph tools)
  --help

Examples:
  npm run bench
  npm run bench -- --quick --only countersign --only kcm-unthrottled
  npm run bench -- --json before.json     and, after a change:     npm run bench -- --compare before.json
  npm run bench -- --quick --only countersign --profile /tmp/profiles
  npm run bench -- --only memory

Exit codes: 0 all measured, 1 something failed, 2 usage.
`;

export function parseOptions(argv: readonly string[]): ParsedOptions {
  let flags;
  try {
    flags = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: false,
      options: {
        quick: { type: 'boolean' },
        requests: { type: 'string' },
        only: { type: 'string', multiple: true },
        json: { type: 'string' },
        compare: { type: 'string' },
        profile: { type: 'string' },
        patience: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
  if (flags.help === true) return { kind: 'help' };
  const quick = flags.quick === true;
  const requests = Number(flags.requests ?? (quick ? 200 : 1_000));
  if (!Number.isInteger(requests) || requests < 100 || requests > 5_000)
    return wrong(`--requests ${flags.requests}: not a number from 100 to 5000`);
  const patienceSeconds = Number(flags.patience ?? 0);
  if (!Number.isInteger(patienceSeconds) || patienceSeconds < 0 || patienceSeconds > 600)
    return wrong(`--patience ${flags.patience}: not a number from 0 to 600`);
  const only = flags.only ?? (quick ? [...quickContenders, ...quickSections] : names);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) return wrong(`--only ${unknown}: not one of ${names.join(', ')}`);
  return {
    kind: 'run',
    options: {
      quick,
      requests,
      contenders: contenderNames.filter((name) => only.includes(name)),
      sections: new Set(sectionNames.filter((name) => only.includes(name))),
      chosen: flags.only !== undefined,
      json: flags.json,
      compare: flags.compare,
      profile: flags.profile,
      patienceSeconds,
    },
  };
}

function wrong(message: string): ParsedOptions {
  return { kind: 'wrong', message };
}
