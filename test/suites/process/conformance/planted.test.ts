import { expect, test } from 'vitest';
import { checks } from '../../../conformance/checks.ts';
import { runConformance } from '../../../conformance/conformance.ts';
import { httpClient } from '../../../conformance/http-client.ts';
import { plants } from './planted.ts';
import { startSite } from './site.ts';

async function check(...[wrap]: Parameters<typeof startSite>) {
  const site = await startSite(wrap);
  const client = httpClient();
  try {
    return await runConformance({ base: site.base, fetch: client.fetch, timeoutMilliseconds: 60_000 });
  } finally {
    client.close();
    await site.stop();
  }
}

test('the unbroken endpoint passes every check, busy answers included', async () => {
  const results = await check();
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
  expect(results.map(({ id }) => id)).toEqual(checks.map(({ id }) => id));
  // Without a 503 the check of Retry-After would have had nothing to check.
  expect(results.find(({ id }) => id === 'no-retry-after')?.detail).toMatch(/^\d+ answers were 503$/);
});

test.each(plants)('an endpoint that $fault: $caughtBy', async ({ wrap, caughtBy }) => {
  const failed = (await check(wrap)).filter(({ outcome }) => outcome === 'failed');
  expect(failed.map(({ id }) => id).toSorted(), JSON.stringify(failed, null, 1)).toEqual(caughtBy.toSorted());
});

test('each check is failed by a fault', () => {
  const caught = new Set(plants.flatMap(({ caughtBy }) => caughtBy));
  expect(checks.map(({ id }) => id).filter((id) => !caught.has(id))).toEqual([]);
  expect([...caught].filter((id) => !checks.some((each) => each.id === id))).toEqual([]);
});
