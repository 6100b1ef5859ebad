import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { contenderNames } from './contenders/contender.ts';
import type { ContenderName } from './contenders/contender.ts';

/** What is measured besides the signers. */
export const sectionNames = ['approval', 'memory', 'steps', 'bundles', 'authenticator'] as const;
export type SectionName = (typeof sectionNames)[number];

export interface BenchOptions {
  readonly quick: boolean;
  readonly requests: number;
  readonly contenders: readonly ContenderName[];
  readonly sections: ReadonlySet<SectionName>;
  /** Whether `--only` named contenders or sections; nothing else is measured then. */
  readonly chosen: boolean;
  /** The file for the results; by default bench/results/<date>.json. */
  readonly json: string | undefined;
  /** Another checkout of Countersign, which takes turns with this one. */
  readonly against: string | undefined;
  readonly profile: string | undefined;
  /** Whether the comparisons are written into docs/internals/performance.md. */
  readonly docs: boolean;
}

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: BenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

/** The phases that show most about a change in a few minutes. */
const quickContenders: readonly ContenderName[] = ['countersign', 'kcm-unthrottled', 'kcm-default'];
const quickSections: readonly SectionName[] = ['approval', 'steps'];

const names: readonly string[] = [...contenderNames, ...sectionNames];

export const helpText = `Measures how fast requests get their certificates from Countersign and from the real kube-controller-manager: approved and
pending requests, at once, at a steady rate and one by one; the relay's time and memory in a large cluster; each step of
signing by itself; the functions' bundles compared with the bare libraries they need; and kubelet-authenticator compared with an
empty Node.js program.

Contenders take turns of a few seconds (A B, B A, …), each on a real control plane of its own. The report gives the
median of the ratios of all pairs, with the interval that holds it with a probability of 95 %. Other work on the machine
slows down both sides of a pair, so it widens the interval rather than moving the median. A part that fails is
reported with its reason, and the rest is still measured and written.

Usage: npm run bench -- [options]

  --quick            about five minutes, with at least six pairs for each comparison: 200 requests at once, 50 a second,
                     one by one, 100 pending ones with evidence; the steps. It leaves out the one process, LocalStack,
                     backlogs, the relay's memory, bundles and authenticator; --only measures these, with fewer
                     repetitions. Without --quick, a run takes about half an hour
  --requests N       requests of a burst, 100 to 5000 (default: 500; 200 with --quick)
  --only NAME        this contender or section only; repeat it for more
                     (contenders: ${contenderNames.join(', ')};
                     sections: ${sectionNames.join(', ')};
                     approval measures all contenders unless some are named too)
  --against DIR      another checkout takes turns with this one, with its dependencies installed: before and after a change
  --docs             write the comparisons into docs/internals/performance.md
  --json FILE        write the results there (default: bench/results/<date and time>.json)
  --profile DIR      write a CPU profile of each Countersign process there, as .cpuprofile (open it in Chrome's DevTools)
                     and as folded stacks (.folded, for flame graph tools)
  --help

Examples:
  npm run bench
  npm run bench -- --quick --only countersign --only kcm-unthrottled
  git worktree add ../before HEAD~1 && (cd ../before && npm ci) && npm run bench -- --quick --against ../before
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
        against: { type: 'string' },
        profile: { type: 'string' },
        docs: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
  if (flags.help === true) return { kind: 'help' };
  const quick = flags.quick === true;
  const requests = Number(flags.requests ?? (quick ? 200 : 500));
  if (!Number.isInteger(requests) || requests < 100 || requests > 5_000)
    return wrong(`--requests ${flags.requests}: not a number from 100 to 5000`);
  const against = flags.against === undefined ? undefined : resolve(flags.against);
  if (against !== undefined && !existsSync(join(against, 'dev/serve.ts')))
    return wrong(`--against ${flags.against}: not a checkout of this project`);
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
      against,
      profile: flags.profile,
      docs: flags.docs === true,
    },
  };
}

function wrong(message: string): ParsedOptions {
  return { kind: 'wrong', message };
}
