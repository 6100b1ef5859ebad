/** One run: a name, clients that count their calls, the login, and all steps. */
import { randomBytes } from 'node:crypto';
import { runAcceptance } from './engine.ts';
import type { Report } from './engine.ts';
import { connect } from './world/clients.ts';
import type { ConnectOptions } from './world/clients.ts';
import { planClusters } from './world/clusters.ts';
import { loginOf } from './world/login.ts';
import type { Emulated } from './world/emulator.ts';
import type { Extra, Step } from './world/step.ts';

export interface Run {
  readonly connection: ConnectOptions;
  readonly steps: readonly Step[];
  readonly partition: string;
  /** Absent on AWS. */
  readonly emulator?: Emulated;
  readonly pollMilliseconds: number;
  readonly idleMinutes: number;
  readonly extras: ReadonlySet<Extra>;
  /** Where the instances start. Undefined: a subnet of the default VPC. */
  readonly subnet?: string;
  readonly keep: boolean;
  readonly signal: AbortSignal;
  /** One line for the reader who waits. */
  readonly log: (line: string) => void;
  /** Called before each call, with its name. */
  readonly onCall?: (call: string) => void;
}

/** Throws if the login is refused: then nothing was made. */
export async function runOnce(run: Run): Promise<Report> {
  const {
    connection,
    steps,
    partition,
    emulator,
    pollMilliseconds,
    idleMinutes,
    extras,
    subnet,
    keep,
    signal,
    log,
    onCall,
  } = run;
  const calls = new Map<string, number>();
  const count = (call: string): void => {
    calls.set(call, (calls.get(call) ?? 0) + 1);
    onCall?.(call);
  };
  const aws = connect(connection, count);
  try {
    const { account, principal } = await loginOf(aws);
    const place = { partition, account, region: connection.region };
    const name = `accept-${randomBytes(4).toString('hex')}`;
    log(`Acceptance run ${name}, account ${account}, region ${place.region}, as ${principal}\n`);
    const plan = await planClusters(name, place, principal, emulator?.machines);
    const site = {
      name,
      place,
      principal,
      aws,
      count,
      plan,
      pollMilliseconds,
      idleMinutes,
      ...(subnet === undefined ? {} : { subnet }),
    };
    return await runAcceptance({
      steps,
      site: emulator === undefined ? site : { ...site, emulator },
      calls,
      extras,
      keep,
      signal,
      now: Date.now,
      log,
    });
  } finally {
    aws.close();
  }
}
