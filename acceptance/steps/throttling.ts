import {
  DeleteFunctionConcurrencyCommand,
  GetFunctionConcurrencyCommand,
  PutFunctionConcurrencyCommand,
} from '@aws-sdk/client-lambda';
import { callerRoleName, functionName } from '../../core/configuration/resolve/deployment.ts';
import { ask, questionFor } from '../../test/conformance/questions.ts';
import { byRole, byToken, endpointOf, post, withDoor } from '../world/call.ts';
import type { Answer, Authorize } from '../world/call.ts';
import { named } from '../world/names.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Site, Step } from '../world/step.ts';

const atOnce = 50;

/** Which status and body each door has for a call that Lambda throttles, which no page of AWS says. */
export const throttling: Step = {
  id: 'throttling',
  title: `One execution, and ${atOnce} calls at once`,
  minute: 17,
  shows: 'what a throttled call looks like by each door, and that the relay would take it for one',
  needs: ['deploy'],
  statements: (place) => [
    {
      sid: 'LimitSignFunctions',
      actions: ['lambda:PutFunctionConcurrency', 'lambda:DeleteFunctionConcurrency'],
      resources: named('lambda', place, 'function:').slice(1),
    },
  ],
  async run(site) {
    const { plan } = site;
    const relay = await assume(site, roleArn(site, plan.relay));
    const caller = (cluster: string) => assume(site, roleArn(site, callerRoleName(cluster)), { by: relay });
    await limited(site, plan.api, async () => {
      await burst(site, 'HTTP API', endpointOf(site, plan.api, 'SignUrl'), byRole(site, await caller(plan.api)));
      await burst(site, 'HTTP API for tokens', endpointOf(site, plan.api, 'JwtSignUrl'), byToken(await plan.token()));
    });
    await limited(site, plan.url, async () =>
      burst(site, 'Function URL', endpointOf(site, plan.url, 'SignUrl'), byRole(site, await caller(plan.url))),
    );
  },
};

async function limited({ aws }: Site, cluster: string, work: () => Promise<void>): Promise<void> {
  const FunctionName = functionName(cluster, 'sign');
  const { ReservedConcurrentExecutions: before } = await aws.lambda.send(
    new GetFunctionConcurrencyCommand({ FunctionName }),
  );
  await aws.lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 1 }));
  try {
    await work();
  } finally {
    // If the run ends here, the stack is deleted anyway.
    await (before === undefined
      ? aws.lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName }))
      : aws.lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: before })));
  }
}

async function burst(site: Site, door: string, base: string, authorize: Authorize): Promise<void> {
  await site.check(
    `${door}: calls are throttled, each with a status that the relay takes for it`,
    async () => {
      const answers = await callAtOnce(site, base, authorize);
      const shown = Map.groupBy(answers, ({ status, outcome, text }) =>
        outcome === null ? `${status} ${text.slice(0, 120)}` : `${status} ${outcome}`,
      );
      const seen = [...shown].map(([what, { length }]) => `${length} × ${what}`).join('; ');
      const byDoor = answers.filter(({ outcome }) => outcome === null);
      if (byDoor.length === 0) throw new Error(`no call was throttled: ${seen}`);
      if (byDoor.some(({ status }) => ![429, 500, 502, 503, 504].includes(status))) throw new Error(seen);
      return seen;
    },
    'concurrency',
  );
}

function callAtOnce(site: Site, base: string, authorize: Authorize): Promise<readonly Answer[]> {
  return withDoor(site, authorize, (fetch) =>
    Promise.all(
      Array.from({ length: atOnce }, () => {
        const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: site.name, groups: [] }));
        return post(fetch, `${base}/sign`, object);
      }),
    ),
  );
}
