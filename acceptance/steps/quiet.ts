import { LookupEventsCommand } from '@aws-sdk/client-cloudtrail';
import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { setTimeout as sleep } from 'node:timers/promises';
import { certificatesTable, itemKey } from '../../adapters/dynamodb/table.ts';
import { parsedObject } from '../../core/encoding/json-object.ts';
import { serving, signed } from '../world/call.ts';
import { named } from '../world/names.ts';
import { NotShown } from '../world/recorder.ts';
import type { Site, Step } from '../world/step.ts';
import { eventually } from '../world/wait.ts';

const minute = 60_000;
/** CloudTrail has most events within five minutes, and promises no time. */
const trailMinutes = 15;

/** CloudTrail needs minutes, in which this step calls nothing of the cluster: so both are one step. */
export const quiet: Step = {
  id: 'quiet',
  title: 'What an auditor finds, and a signature after quiet minutes',
  minute: 28,
  shows:
    'the record of a certificate names the KMS request that signed it, and CloudTrail has the event of that request; after minutes without a call the next one is signed at once',
  needs: ['deploy'],
  statements: (place) => [
    { sid: 'ReadRecord', actions: ['dynamodb:GetItem'], resources: named('dynamodb', place, 'table/').slice(1) },
    { sid: 'ReadTrail', actions: ['cloudtrail:LookupEvents'], resources: ['*'] },
  ],
  async run(site) {
    const { plan, idleMinutes } = site;
    const begun = Date.now();
    let request = '';
    await site.check(
      'the record of a certificate has its KMS request',
      async () => (request = await kmsRequestOf(site)),
      'http-api',
    );
    const last = Date.now();
    const what = 'CloudTrail has the event of that request';
    if (request === '') site.notShown(what, 'there is no such request');
    else await site.check(what, () => lookUp(site, request, begun), 'trail');

    const again = 'after quiet minutes the next request is signed, at the first try';
    if (idleMinutes === 0) return site.notShown(again, 'only with --idle MINUTES');
    await sleep(Math.max(0, last + idleMinutes * minute - Date.now()));
    await site.check(
      again,
      async () => {
        const since = Math.round((Date.now() - last) / minute);
        const asked = Date.now();
        await signed(site, plan.api, serving(site));
        return `after ${since} minutes, in ${Date.now() - asked} ms`;
      },
      'http-api',
    );
  },
};

async function kmsRequestOf(site: Site): Promise<string> {
  const { plan, aws, outputs } = site;
  const asked = serving(site);
  await signed(site, plan.api, asked);
  const { Item: item } = await aws.dynamodb.send(
    new GetItemCommand({
      TableName: outputs.get(plan.api)?.['CertificatesTable'],
      Key: { [certificatesTable.partitionKey]: { S: itemKey('uid', asked.object.metadata.uid) } },
      ConsistentRead: true,
    }),
  );
  const request = item?.['kmsRequestId']?.S;
  if (request === undefined)
    throw new Error(item === undefined ? 'there is no record' : 'the record names no KMS request');
  return request;
}

async function lookUp(site: Site, request: string, begun: number): Promise<string> {
  const asked = Date.now();
  const found = await eventually(site, trailMinutes, async () => {
    let NextToken: string | undefined;
    do {
      const page = await site.aws.cloudtrail.send(
        new LookupEventsCommand({
          LookupAttributes: [{ AttributeKey: 'EventName', AttributeValue: 'Sign' }],
          StartTime: new Date(begun - minute),
          ...(NextToken === undefined ? {} : { NextToken }),
        }),
      );
      for (const { CloudTrailEvent: text = '', EventId: id = '' } of page.Events ?? [])
        if (parsedObject(text)?.['requestID'] === request) return id;
      ({ NextToken } = page);
    } while (NextToken !== undefined);
    return undefined;
  });
  if (found === undefined) {
    if (site.emulator !== undefined) throw new Error('no event');
    throw new NotShown(
      `the event did not arrive within ${trailMinutes} minutes. Look again: aws cloudtrail lookup-events --region ${site.place.region} --lookup-attributes AttributeKey=EventName,AttributeValue=Sign, for requestID ${request}`,
    );
  }
  return `event ${found}, after ${Math.round((Date.now() - asked) / 1_000)} s`;
}
