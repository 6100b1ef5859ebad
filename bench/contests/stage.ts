/**
 * Compares contenders. They are started together, each on its own control plane, and measured in turns: while one works,
 * the others are idle. Halfway all are restarted, each on the next control plane, so that an API server or a process that
 * happens to be slow does not count against one contender.
 */
import { removeAll } from '../requests/request-snapshot.ts';
import type { Snapshot } from '../requests/request-snapshot.ts';
import type { Report } from '../attempts.ts';
import type { Contender, RunningContender, StartOptions, Surroundings } from '../contenders/contender.ts';
import { observeRequests } from '../requests/observer.ts';
import type { NodeRequest } from '../requests/requests.ts';
import type { PhaseResult, PhaseRow, Turn } from '../results.ts';
import { alternate } from '../measure/rounds.ts';
import type { RoundsPlan } from '../measure/rounds.ts';
import { warmUp } from './turns.ts';
import type { Measured, Site } from './turns.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** A running contender, which a phase may restart. */
export interface StartedSite extends Site {
  running: RunningContender;
  restart(): Promise<RunningContender>;
}

export interface Phase extends Pick<PhaseResult, 'name' | 'description' | 'compared'>, RoundsPlan {
  /** Does one turn. */
  readonly turn: (site: StartedSite) => Promise<Measured>;
}

export interface Stage {
  readonly name: string;
  readonly contenders: readonly Contender[];
  readonly phases: readonly Phase[];
  /** The requests of a warm-up. */
  readonly warmUp: (
    contender: Contender,
  ) => Promise<{ readonly snapshot: Snapshot; readonly given?: readonly NodeRequest[] }>;
}

export interface StageSetting {
  /** At least one for each contender. */
  readonly planes: readonly Surroundings[];
  /** The folder for CPU profiles. */
  readonly profile: string | undefined;
  readonly report: Report;
}

const blocks = 2;

export async function measureStage(stage: Stage, setting: StageSetting): Promise<readonly PhaseResult[]> {
  const { contenders, phases } = stage;
  const rows = phases.map(() => contenders.map((): Turn[] => []));
  const failed = new Set<Contender>();
  for (let block = 0; block < blocks && failed.size < contenders.length; block++)
    await measureBlock(stage, setting, block, rows, failed);
  return phases.map(({ name, description, compared }, phase) => ({
    name,
    description,
    compared,
    rows: contenders
      .map(({ name: contender, label }, index): PhaseRow => ({ contender, label, turns: rows[phase]![index]! }))
      .filter(({ turns }) => turns.length > 0),
  }));
}

/** Adds the turns of one half to `rows`, by phase and contender. */
async function measureBlock(
  { name, contenders, phases, warmUp: warmUpOf }: Stage,
  { planes, profile, report }: StageSetting,
  block: number,
  rows: readonly (readonly Turn[][])[],
  failed: Set<Contender>,
): Promise<void> {
  const open: StartedSite[] = [];
  /** Reports a contender that fails, with the end of its logs; the others continue. */
  const attempt = async <T>(contender: Contender, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      const site = open.find((each) => each.contender === contender);
      const logs = site?.running.processes.map((process) => `${process.name}:\n${process.logTail(8)}`) ?? [];
      const why = [errorMessage(error), ...logs].join('\n');
      report.say(`${contender.label} FAILED: ${why}`);
      report.failed.push({ what: `${name}, ${contender.label}`, why });
      failed.add(contender);
      return undefined;
    }
  };
  try {
    for (const [index, contender] of contenders.entries()) {
      if (failed.has(contender)) continue;
      const surroundings = planes[(index + block) % planes.length]!;
      report.say(`${name}, ${block + 1} of ${blocks}: starting ${contender.label}`);
      await attempt(contender, async () => {
        const site = await openSite(contender, surroundings, startOptions(profile, `${name}-${contender.name}`));
        open.push(site);
        const { snapshot, given } = await warmUpOf(contender);
        await warmUp(site, snapshot, given);
      });
    }
    for (const [index, { name: what, rounds, milliseconds, turn }] of phases.entries()) {
      const sites = open.filter(({ contender }) => !failed.has(contender));
      const plan = { rounds: Math.ceil(rounds / blocks), milliseconds: milliseconds / blocks };
      report.say(`${name}, ${block + 1} of ${blocks}: ${what}, ${plan.rounds} rounds of ${sites.length}`);
      await alternate(sites, plan, async (site, round) => {
        const measured = await attempt(site.contender, () => turn(site));
        if (measured === undefined) return undefined;
        rows[index]![contenders.indexOf(site.contender)]!.push({ round: block * plan.rounds + round, ...measured });
        return measured;
      });
    }
  } finally {
    for (const site of open) await closeSite(site);
  }
}

function startOptions(profile: string | undefined, of: string): StartOptions {
  return profile === undefined ? {} : { profile: { folder: profile, of: of.replaceAll(/[^\w-]+/g, '-') } };
}

async function openSite(contender: Contender, surroundings: Surroundings, options: StartOptions): Promise<StartedSite> {
  const observer = await observeRequests(surroundings.controlPlane);
  try {
    const site: StartedSite = {
      contender,
      surroundings,
      observer,
      running: await contender.start(surroundings, options),
      async restart() {
        site.running = await contender.start(surroundings, options);
        return site.running;
      },
    };
    return site;
  } catch (error) {
    observer.close();
    throw error;
  }
}

/** Stops the contender and empties its control plane. */
async function closeSite({ surroundings, observer, running }: StartedSite): Promise<void> {
  observer.close();
  await running.stop();
  await removeAll(surroundings.controlPlane);
}
