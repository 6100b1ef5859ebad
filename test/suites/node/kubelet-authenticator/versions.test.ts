/**
 * Nodes and signing sides of different ages (Cluster API's proposal, Version Skew Strategy): the program itself, in a
 * process of its own, at the real handlers and the real relay.
 */
import { afterEach, expect, test } from 'vitest';
import { startAuthenticatorSite } from '../../../harness/node/authenticator-site.ts';
import type { AuthenticatorSite, RequestSeen, SiteOptions } from '../../../harness/node/authenticator-site.ts';

let site: AuthenticatorSite | undefined;
afterEach(async () => {
  await site?.close();
  site = undefined;
});

/** A signing side that takes aws/v1 alone, as those before aws/v2 did. */
const olderSide = { requireIdentityRole: false, roles: ['arn:aws:iam::111122223333:role/node'] };

async function start(aws: NonNullable<SiteOptions['aws']>): Promise<AuthenticatorSite> {
  site = await startAuthenticatorSite({ aws });
  return site;
}

/** Version of the evidence, and what became of it. */
function ends(requests: readonly RequestSeen[]): readonly string[] {
  return requests
    .map(({ pem, conditions, certificatePem }) => {
      const [, provider = ''] = /ATTESTATION PROVIDER-----\n(.*)\n/.exec(pem) ?? [];
      const end = certificatePem === undefined ? conditions.map(({ reason }) => reason).join() : 'issued';
      return `${Buffer.from(provider, 'base64').toString()} ${end}`;
    })
    .toSorted();
}

test('finding 7: a node sends aws/v2, and is let in with it', async () => {
  const here = await start({});
  const one = await here.node('new');
  expect(await one.run()).toMatchObject({ code: 0 });
  expect(ends(await here.requests())).toEqual(['aws/v2 issued']);
});

test('finding 7: a newer node at an older signing side files again at once with the older version', async () => {
  const here = await start(olderSide);
  const one = await here.node('newer');
  const { code, stderr } = await one.run();
  expect([code, stderr]).toEqual([0, expect.stringContaining('evidence aws/v2 is not taken here, but aws/v1')]);
  expect(ends(await here.requests())).toEqual(['aws/v1 issued', 'aws/v2 AttestationVersion']);
});

test('finding 7: an older node at a newer signing side is let in until the operator ends its version', async () => {
  const older = { settings: { evidenceVersion: 'aws/v1' } };
  const newer = await start({});
  expect(await (await newer.node('older', older)).run()).toMatchObject({ code: 0 });
  expect(ends(await newer.requests())).toEqual(['aws/v1 issued']);
  await newer.close();

  const ended = await start({ acceptV1: false });
  const { code, stderr } = await (await ended.node('older', older)).run();
  expect(code).toBe(1);
  expect(stderr).toContain('(AttestationVersion): evidence aws/v1 is not taken here, but aws/v2: update');
  expect(ends(await ended.requests())).toEqual(['aws/v1 AttestationVersion']);
});

test('finding 7: a node that must not send the document sends none, whatever the refusal asks for', async () => {
  const here = await start(olderSide);
  const one = await here.node('strict', { settings: { evidenceVersion: 'aws/v2' } });
  expect(await one.run()).toMatchObject({ code: 1 });
  expect(ends(await here.requests())).toEqual(['aws/v2 AttestationVersion']);
});
