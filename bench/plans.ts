/** How much is measured, and which contenders are compared. Each phase is bounded in rounds and in time. */
import { approverOf, approvers } from './contenders/approvers.ts';
import type { Contender } from './contenders/contender.ts';
import type { BenchOptions } from './options.ts';
import type { RoundsPlan } from './measure/rounds.ts';
import { signerOf, signers } from './contenders/signers.ts';

/** How often a phase repeats its turn, and the requests in each. */
export interface PhasePlan extends RoundsPlan {
  readonly requests: number;
}

export interface SignerPlan {
  readonly warmUp: number;
  readonly burst: PhasePlan;
  readonly steady: PhasePlan & { readonly perSecond: number };
  readonly oneByOne: PhasePlan;
  /** Starts the contender in each turn; absent if that is not measured. */
  readonly backlog?: PhasePlan;
}

export interface ApproverPlan {
  readonly warmUp: number;
  readonly burst: PhasePlan;
  readonly oneByOne: PhasePlan;
}

/** Contenders that take turns with each other. */
export interface Lineup {
  readonly signers: readonly Contender[];
  /** The default kube-controller-manager, whose turns last long, takes turns with Countersign only. */
  readonly throttled: readonly Contender[];
  readonly approvers: readonly Contender[];
  /** An emulator is measured by itself: its figures are not compared with those of others. */
  readonly emulated: { readonly signers: readonly Contender[]; readonly approvers: readonly Contender[] };
}

export function lineup({ contenders, sections, chosen, quick, against }: BenchOptions): Lineup {
  const wanted = signers.filter(({ name }) => contenders.some((each) => each === name));
  const competing = wanted.filter(({ name }) => name !== 'kcm-default' && name !== 'localstack');
  const throttled = wanted.filter(({ name }) => name === 'kcm-default');
  const countersign = competing.filter(({ name }) => name === 'countersign');
  const approving = sections.has('approval') ? approversFor(contenders, chosen, quick) : [];
  const others = approving.filter(({ name }) => name !== 'localstack');
  return {
    signers: withCheckout(competing, against, signerOf),
    throttled: throttled.length === 0 ? [] : [...countersign, ...throttled],
    approvers: withCheckout(others, against, approverOf),
    emulated: {
      signers: wanted.filter(({ name }) => name === 'localstack'),
      approvers: approving.filter(({ name }) => name === 'localstack'),
    },
  };
}

/** All approvers, unless contenders are named; a quick run leaves out those that a change affects least. */
function approversFor(contenders: BenchOptions['contenders'], chosen: boolean, quick: boolean): readonly Contender[] {
  if (chosen && contenders.length > 0)
    return approvers.filter(({ name }) => contenders.some((each) => name.startsWith(each)));
  return quick ? approvers.filter(({ name }) => name === 'countersign' || name === 'kcm-unthrottled') : approvers;
}

/** Adds Countersign of the other checkout right after that of this one. */
function withCheckout(
  contenders: readonly Contender[],
  against: string | undefined,
  contenderOf: (checkout: string) => Contender,
): readonly Contender[] {
  if (against === undefined) return contenders;
  return contenders.flatMap((each) => (each.name === 'countersign' ? [each, contenderOf(against)] : [each]));
}

const second = 1_000;

export function signerPlan({ quick, requests }: BenchOptions): SignerPlan {
  if (quick)
    return {
      warmUp: 400,
      burst: { requests, rounds: 30, milliseconds: 100 * second },
      steady: { requests: 100, perSecond: 50, rounds: 8, milliseconds: 60 * second },
      oneByOne: { requests: 20, rounds: 16, milliseconds: 45 * second },
    };
  return {
    warmUp: 500,
    burst: { requests, rounds: 40, milliseconds: 400 * second },
    steady: { requests: 150, perSecond: 50, rounds: 20, milliseconds: 240 * second },
    oneByOne: { requests: 20, rounds: 40, milliseconds: 120 * second },
    backlog: { requests, rounds: 12, milliseconds: 240 * second },
  };
}

/** The default kube-controller-manager signs 20 requests a second, so a turn takes requests / 20 seconds. */
export function throttledPlan({ quick, requests }: BenchOptions): PhasePlan {
  return { requests, rounds: quick ? 6 : 8, milliseconds: (quick ? 90 : 300) * second };
}

export function approverPlan({ quick, requests }: BenchOptions): ApproverPlan {
  return quick
    ? {
        warmUp: 50,
        burst: { requests: Math.min(100, requests), rounds: 14, milliseconds: 90 * second },
        oneByOne: { requests: 10, rounds: 12, milliseconds: 45 * second },
      }
    : {
        warmUp: 200,
        burst: { requests: Math.min(200, requests), rounds: 24, milliseconds: 300 * second },
        oneByOne: { requests: 10, rounds: 30, milliseconds: 120 * second },
      };
}

/** For an emulator, whose answers take a tenth of a second of CPU time each. */
export const emulatedPlan: { readonly signer: SignerPlan; readonly approver: ApproverPlan } = {
  signer: {
    warmUp: 50,
    burst: { requests: 200, rounds: 4, milliseconds: 120 * second },
    steady: { requests: 100, perSecond: 5, rounds: 2, milliseconds: 60 * second },
    oneByOne: { requests: 20, rounds: 6, milliseconds: 30 * second },
  },
  approver: {
    warmUp: 20,
    burst: { requests: 100, rounds: 4, milliseconds: 120 * second },
    oneByOne: { requests: 10, rounds: 6, milliseconds: 60 * second },
  },
};
