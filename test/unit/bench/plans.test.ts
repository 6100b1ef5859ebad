import { describe, expect, test } from 'vitest';
import { parseOptions } from '../../../bench/options.ts';
import type { BenchOptions } from '../../../bench/options.ts';
import { approverPlan, emulatedPlan, lineup, signerPlan, throttledPlan } from '../../../bench/plans.ts';
import type { PhasePlan } from '../../../bench/plans.ts';

function options(...argv: readonly string[]): BenchOptions {
  const parsed = parseOptions(argv);
  if (parsed.kind !== 'run') throw new Error('these options were refused');
  return parsed.options;
}

function names(...argv: readonly string[]) {
  const { signers, throttled, approvers, emulated } = lineup(options(...argv));
  const of = (contenders: readonly { readonly name: string }[]): string => contenders.map(({ name }) => name).join(' ');
  return {
    signers: of(signers),
    throttled: of(throttled),
    approvers: of(approvers),
    emulated: [of(emulated.signers), of(emulated.approvers)],
  };
}

describe('contenders that take turns with each other', () => {
  test('are all but the throttled one and the emulator', () => {
    expect(names()).toEqual({
      signers: 'countersign one-process kcm-unthrottled',
      throttled: 'countersign kcm-default',
      approvers: 'countersign countersign-unproved kcm-unthrottled',
      emulated: ['localstack', 'localstack'],
    });
    expect(names('--quick')).toEqual({
      signers: 'countersign kcm-unthrottled',
      throttled: 'countersign kcm-default',
      approvers: 'countersign kcm-unthrottled',
      emulated: ['', ''],
    });
  });

  test('are those that --only names', () => {
    expect(names('--only', 'kcm-default')).toMatchObject({ signers: '', throttled: 'kcm-default', approvers: '' });
    expect(names('--only', 'approval', '--only', 'countersign')).toMatchObject({
      signers: 'countersign',
      throttled: '',
      approvers: 'countersign countersign-unproved',
    });
    expect(names('--quick', '--only', 'approval', '--only', 'localstack').emulated).toEqual([
      'localstack',
      'localstack',
    ]);
  });

  test('with --against another checkout comes right after Countersign', () => {
    expect(names('--quick', '--against', '.')).toMatchObject({
      signers: 'countersign against kcm-unthrottled',
      throttled: 'countersign kcm-default',
      approvers: 'countersign against kcm-unthrottled',
    });
  });
});

describe('the phases', () => {
  const phasesOf = (chosen: BenchOptions): readonly PhasePlan[] => {
    const [signer, approver] = [signerPlan(chosen), approverPlan(chosen)];
    const ofSigners = [signer.burst, signer.steady, signer.oneByOne, signer.backlog ?? []].flat();
    return [...ofSigners, approver.burst, approver.oneByOne, throttledPlan(chosen)];
  };

  test.each([[['--quick']], [[]]])('with %j have pairs enough for an interval, and end', (argv) => {
    const phases = phasesOf(options(...argv));
    for (const { rounds } of phases) expect(rounds).toBeGreaterThanOrEqual(6);
    const minutes = phases.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 60_000;
    expect(minutes).toBeLessThanOrEqual(argv.includes('--quick') ? 8 : 40);
  });

  test('are of the size that --requests names', () => {
    const chosen = options('--requests', '300');
    expect([signerPlan(chosen).burst.requests, throttledPlan(chosen).requests]).toEqual([300, 300]);
    expect(approverPlan(options('--quick')).burst.requests).toBe(100);
  });

  test('leave out the backlog in a quick run and of an emulator', () => {
    expect(signerPlan(options()).backlog).toBeDefined();
    expect(signerPlan(options('--quick')).backlog).toBeUndefined();
    expect(emulatedPlan.signer.backlog).toBeUndefined();
  });
});
