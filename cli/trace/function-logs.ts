/** Searches the logs of the functions in CloudWatch Logs, within a bounded number of calls. */
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { awsFailure } from '../aws/aws-failure.ts';
import { clientOptions } from '../aws/client-options.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { LogFindings, LogSearch } from '../runtime/io.ts';

/** CloudWatch Logs answers in pages, also with empty ones: each covers a part of the log, not of the findings. */
const mostPages = 50;
const mostMilliseconds = 60_000;
/** A request has one line for each delivery. */
const mostLines = 500;

export interface FunctionLogs {
  search(group: string, search: LogSearch): Promise<LogFindings>;
  close(): void;
}

/** With the operator's AWS login. Throws CommandFailure. Needs `logs:FilterLogEvents`. */
export function openFunctionLogs(
  where: { readonly region?: string },
  monotonic: () => number = () => performance.now(),
): FunctionLogs {
  // CloudWatch Logs admits five calls a second for a whole account, so a throttled call is repeated more often than others.
  const client = new CloudWatchLogsClient({ ...clientOptions(), maxAttempts: 5, ...where });

  async function search(group: string, { pattern, from, to }: LogSearch): Promise<LogFindings> {
    const begun = monotonic();
    const lines: { at: number; text: string }[] = [];
    let nextToken: string | undefined;
    for (let page = 0; page < mostPages; page += 1) {
      const command = new FilterLogEventsCommand({
        logGroupName: group,
        filterPattern: pattern,
        startTime: from,
        endTime: to,
        ...(nextToken === undefined ? {} : { nextToken }),
      });
      const { events = [], nextToken: next } = await client.send(command);
      for (const { timestamp: at, message: text } of events)
        if (at !== undefined && text !== undefined) lines.push({ at, text });
      // The same token again would be the same page again.
      if (next === undefined || next === nextToken) return { lines: lines.slice(0, mostLines) };
      if (lines.length >= mostLines)
        return { lines: lines.slice(0, mostLines), endedEarly: `after ${mostLines} lines` };
      if (monotonic() - begun > mostMilliseconds) return { lines, endedEarly: `after ${mostMilliseconds / 1_000} s` };
      nextToken = next;
    }
    return { lines, endedEarly: `after ${mostPages} pages` };
  }

  return {
    async search(group, wanted) {
      try {
        return await search(group, wanted);
      } catch (error) {
        if (error instanceof Error && error.name === 'ResourceNotFoundException')
          throw new CommandFailure(exitCodes.notFound, `there is no log group ${group} in this account and region`);
        throw awsFailure('CloudWatch Logs', error, `logs:FilterLogEvents on ${group}`);
      }
    },
    close: () => client.destroy(),
  };
}
