import { InvokeCommand } from '@aws-sdk/client-lambda';
import { callerRoleName, functionName } from '../../core/configuration/resolve/deployment.ts';
import { runConformance } from '../../test/conformance/conformance.ts';
import { ask, questionFor } from '../../test/conformance/questions.ts';
import { byRole, byToken, endpointOf, post, withDoor } from '../world/call.ts';
import type { Answer, Authorize } from '../world/call.ts';
import type { Limit } from '../world/emulator.ts';
import { refusedBy } from '../world/recorder.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Site, Step } from '../world/step.ts';

/** The rights are those of the relay's role, which the step `roles` made. */
export const doors: Step = {
  id: 'doors',
  title: 'The doors: who gets in, and who does not',
  minute: 6,
  shows: 'all conformance checks behind each of the three doors; callers without the right credentials are refused',
  needs: ['deploy'],
  statements: () => [],
  async run(site) {
    const { plan } = site;
    const relay = await assume(site, roleArn(site, plan.relay));
    const caller = (cluster: string) => assume(site, roleArn(site, callerRoleName(cluster)), { by: relay });
    const [api, url] = [await caller(plan.api), await caller(plan.url)];
    const signed = endpointOf(site, plan.api, 'SignUrl');
    const tokens = endpointOf(site, plan.api, 'JwtSignUrl');
    const functionUrl = endpointOf(site, plan.url, 'SignUrl');

    await conformance(site, 'an HTTP API for a role', signed, byRole(site, api), 'http-api');
    await conformance(site, 'an HTTP API for tokens', tokens, byToken(await plan.token()), 'http-api');
    await conformance(site, 'a Function URL', functionUrl, byRole(site, url), 'function-url');

    const refused: readonly [string, string, Authorize | undefined, number, Limit][] = [
      ['without a signature, HTTP API', signed, undefined, 403, 'http-api'],
      ['by the caller role of another cluster, HTTP API', signed, byRole(site, url), 403, 'http-api'],
      ['by the relay’s role itself, HTTP API', signed, byRole(site, relay), 403, 'http-api'],
      ['without a token, HTTP API for tokens', tokens, undefined, 401, 'http-api'],
      ['a token for another audience', tokens, byToken(await plan.token('other')), 403, 'http-api'],
      ['without a signature, Function URL', functionUrl, undefined, 403, 'function-url'],
      ['by the caller role of another cluster, Function URL', functionUrl, byRole(site, api), 403, 'function-url'],
    ];
    for (const [who, base, authorize, status, limit] of refused)
      await site.check(
        `refused: ${who}`,
        async () => {
          const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: site.name, groups: [] }));
          const answer: Answer = await withDoor(site, authorize, (fetch) => post(fetch, `${base}/sign`, object));
          if (answer.status !== status)
            throw new Error(`${answer.status} ${answer.outcome ?? ''} ${answer.text.slice(0, 200)}`);
          return `${answer.status} ${answer.outcome ?? ''} ${answer.text.slice(0, 100)}`;
        },
        limit,
      );

    for (const [cluster, session] of [
      [plan.api, api],
      [plan.url, url],
    ] as const)
      await site.check(
        `refused: the caller role of ${cluster} invokes its sign function directly`,
        () =>
          refusedBy(
            site.aws.as(session).lambda.send(new InvokeCommand({ FunctionName: functionName(cluster, 'sign') })),
          ),
        'permissions',
      );
  },
};

async function conformance(site: Site, door: string, base: string, authorize: Authorize, limit: Limit): Promise<void> {
  await site.check(
    `conformance by ${door}`,
    () =>
      withDoor(site, authorize, async (fetch) => {
        const results = await runConformance({ base, fetch, concurrent: 4 });
        const failed = results.filter(({ outcome }) => outcome === 'failed');
        if (failed.length > 0)
          throw new Error(
            `${failed.length} of ${results.length}: ${failed.map(({ id, detail }) => `${id}: ${detail}`).join('; ')}`,
          );
        return `${results.filter(({ outcome }) => outcome === 'passed').length} checks passed`;
      }),
    limit,
  );
}
