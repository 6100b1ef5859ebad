import { expect, test } from 'vitest';
import { contenders } from '../../../bench/contenders.ts';
import { parseOptions } from '../../../bench/options.ts';
import { approversFor, approvingPlan, planFor } from '../../../bench/plans.ts';

function planned(...argv: readonly string[]) {
  const parsed = parseOptions(argv);
  if (parsed.kind !== 'run') throw new Error('these options were refused');
  const { options } = parsed;
  return {
    of: (name: string) =>
      planFor(
        contenders.find((contender) => contender.name === name)!,
        options,
      ),
    approvers: approversFor(options).map(({ name }) => name),
    approving: approvingPlan(options),
  };
}

test('everybody has both bursts but who holds himself back, and the same steady rate', () => {
  const { of } = planned();
  for (const { name } of contenders) expect(of(name).steady).toEqual({ perSecond: 50, seconds: 20 });
  for (const name of ['countersign', 'one-process', 'localstack', 'kcm-unthrottled'])
    expect(of(name).bursts).toEqual([1_000, 5_000]);
  expect(of('kcm-default').bursts).toEqual([1_000]);
  expect([of('countersign').backlog, of('localstack').backlog]).toEqual([1_000, 0]);
});

test('who holds himself back is rested before each burst, also in a minute', () => {
  expect(planned('--quick').of('kcm-default')).toMatchObject({ bursts: [100], restMilliseconds: 2_000, sequence: 0 });
  expect(planned('--quick').of('countersign')).toMatchObject({ bursts: [200], backlog: 0 });
});

test('all approve, in a minute two of them, and where contenders are named those', () => {
  const all = ['countersign', 'localstack', 'countersign-unproved', 'kcm-unthrottled', 'kcm-default'];
  expect(planned().approvers).toEqual(all);
  expect(planned('--only', 'approval').approvers).toEqual(all);
  expect(planned('--quick').approvers).toEqual(['countersign', 'kcm-unthrottled']);
  expect(planned('--only', 'approval', '--only', 'countersign').approvers).toEqual([
    'countersign',
    'countersign-unproved',
  ]);
  expect(planned('--quick', '--only', 'approval', '--only', 'localstack').approvers).toEqual(['localstack']);
  expect(planned('--requests', '300').approving.burst).toBe(300);
});
