import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { certificatesTable, itemKey } from '../../adapters/dynamodb/table.ts';
import { callerRoleName } from '../../core/configuration/resolve/deployment.ts';
import { ask, questionFor } from '../../test/conformance/questions.ts';
import { byRole, endpointOf, post, withDoor } from '../world/call.ts';
import { named } from '../world/names.ts';
import { assume, roleArn } from '../world/session.ts';
import type { Step } from '../world/step.ts';

export const record: Step = {
  id: 'record',
  title: 'What an auditor finds',
  minute: 12,
  shows: 'the record of a certificate names the KMS request that signed it, by which CloudTrail has the event',
  needs: ['deploy'],
  statements: (place) => [
    { sid: 'ReadRecord', actions: ['dynamodb:GetItem'], resources: named('dynamodb', place, 'table/').slice(1) },
  ],
  async run(site) {
    const { plan, aws, place } = site;
    await site.check(
      'the record of a certificate has its KMS request',
      async () => {
        const relay = await assume(site, roleArn(site, plan.relay));
        const caller = await assume(site, roleArn(site, callerRoleName(plan.api)), { by: relay });
        const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: site.name, groups: [] }));
        const url = `${endpointOf(site, plan.api, 'SignUrl')}/sign`;
        const answer = await withDoor(site, byRole(site, caller), (fetch) => post(fetch, url, object));
        if (answer.outcome !== 'issued') throw new Error(`${answer.status} ${answer.text.slice(0, 300)}`);
        const { Item: item } = await aws.dynamodb.send(
          new GetItemCommand({
            TableName: site.outputs.get(plan.api)?.['CertificatesTable'],
            Key: { [certificatesTable.partitionKey]: { S: itemKey('uid', object.metadata.uid) } },
            ConsistentRead: true,
          }),
        );
        const request = item?.['kmsRequestId']?.S;
        if (request === undefined)
          throw new Error(item === undefined ? 'there is no record' : 'the record names no KMS request');
        return request;
      },
      'http-api',
    );
    // CloudTrail has an event after some minutes, so the run does not wait for it.
    const command = `aws cloudtrail lookup-events --region ${place.region} --lookup-attributes AttributeKey=EventName,AttributeValue=Sign`;
    site.seen('the event of that request', `${command}, a quarter of an hour later`);
  },
};
