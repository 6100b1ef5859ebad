import { parseArgs } from 'node:util';
import { contenderNames } from './contenders.ts';
import type { ContenderName } from './contenders.ts';

export interface BenchOptions {
  readonly quick: boolean;
  readonly requests: number;
  readonly contenders: readonly ContenderName[];
  /** Whether the functions' bundles are measured. */
  readonly bundles: boolean;
  /** Whether the program on the node is measured. */
  readonly authenticator: boolean;
  /** Whether pending requests are measured on their way through approval. */
  readonly approval: boolean;
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

const names: readonly string[] = [...contenderNames, 'approval', 'bundles', 'authenticator'];

export const helpText = `Measures how fast approved requests get their certificates: Countersign beside the real kube-controller-manager, on one
real control plane, pending requests on their way through approval too, each step of the story by itself, the functions'
bundles beside the bare libraries they need, and kubelet-authenticator beside a Node that does nothing.
Takes about five minutes, most of it the default reference's.

Usage: npm run bench -- [options]

  --quick            in under two minutes: 200 requests, 100 for the default kube-controller-manager
  --requests N       approved requests in backlog and burst, 100 to 5000 (default: 1000)
  --only NAME        this contender only; repeat it for more
                     (${names.join(', ')};
                     bundles and authenticator need no control plane)
  --json FILE        write the results there (default: bench/results/<date and time>.json)
  --compare FILE     also print how this run relates to an earlier one's results
  --patience S       on a machine with other work: before each measurement wait up to S seconds for a quiet moment,
                     and measure a contender again, twice at most, when others took part of the machine after all
  --profile DIR      write a CPU profile of each Countersign process there (open it in Chrome's DevTools)
  --help

Examples:
  npm run bench
  npm run bench -- --quick --only countersign --only kcm-unthrottled
  npm run bench -- --json before.json     and, after a change:     npm run bench -- --compare before.json
  npm run bench -- --quick --only countersign --profile /tmp/profiles
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
  const only = flags.only ?? names;
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) return wrong(`--only ${unknown}: not one of ${names.join(', ')}`);
  return {
    kind: 'run',
    options: {
      quick,
      requests,
      contenders: contenderNames.filter((name) => only.includes(name)),
      bundles: only.includes('bundles'),
      authenticator: only.includes('authenticator'),
      approval: only.includes('approval'),
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
