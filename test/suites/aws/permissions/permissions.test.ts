/** Every permission that the stacks give is one that something here fails without, or stands in a table with its reason. */
import { describe, expect, test } from 'vitest';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { requireTools } from '../../../tools/tools.ts';
import { askBehind, doors } from '../ministack/doors.ts';
import { logOf } from '../ministack/function-logs.ts';
import { clusterTable, doorTables } from './tables.ts';
import type { PermissionTable } from './tables.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const ofDoors = Object.entries(doorTables).map(([name, table]) => ({
  door: doors[name as keyof typeof doors],
  ...table,
}));

describe.skipIf(skip).each(ofDoors)('permissions of the stacks, behind $door.name', (own) => {
  const { door } = own;
  const assembly = skip ? undefined : synthesiseClusters({ demo: door.settings });
  const all: Pick<PermissionTable, 'exercised' | 'reviewed'> = {
    exercised: { ...clusterTable.exercised, ...own.exercised },
    reviewed: { ...clusterTable.reviewed, ...own.reviewed },
  };

  /** Deploys without these and has one certificate issued; gives the actions that were refused on the way. */
  async function refusals(left: readonly string[]): Promise<readonly string[]> {
    let deployment: MiniStackDeployment | undefined;
    const said: string[] = [];
    try {
      deployment = await deployOnMiniStack(assembly!, { change: (template) => withoutPermissions(template, left) });
      const answer = await askBehind(deployment, door, await door.authorize(deployment));
      said.push(answer.text, await logOf(deployment));
      if (left.some((permission) => permission in all.exercised)) expect(answer.outcome).not.toBe('issued');
      else expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('not authorized to perform')) throw error;
      said.push(error.message);
    } finally {
      await deployment?.stop();
    }
    const actions = said.join('\n').matchAll(/is not authorized to perform: ([a-z0-9-]+:\w+)/g);
    return [...new Set([...actions].map(([, action = '']) => action))];
  }

  test('are all exercised here, or reviewed', () => {
    const given = [...assembly!.templates.values()].flatMap(permissionsOf);
    expect(given.toSorted()).toEqual([...Object.keys(all.exercised), ...Object.keys(all.reviewed)].toSorted());
  });

  test('are enough, all together', async () => {
    expect(await refusals([])).toEqual([]);
  });

  test('are as little exercised as the review says: without all of those, the same is issued', async () => {
    expect(await refusals(Object.keys(all.reviewed))).toEqual([]);
  });

  // What is the same behind each door is left out behind the first.
  const tried: PermissionTable['exercised'] = own === ofDoors[0] ? all.exercised : own.exercised;
  test.each(Object.entries(tried))('without %s, %s is refused', async (permission, action) => {
    // Without the reviewed ones too, which change nothing by themselves: MiniStack takes a statement about other keys of the table for this one.
    expect(await refusals([permission, ...Object.keys(all.reviewed)])).toContain(action);
  });
});
