/** The signatures of KMS in CloudTrail's event history, with the operator's AWS login. */
import { CloudTrailClient, LookupEventsCommand } from '@aws-sdk/client-cloudtrail';
import { signEventOf } from '../../core/inventory/sign-event.ts';
import { parsedObject } from '../../core/encoding/json-object.ts';
import type { SignEvent } from '../../core/inventory/reconcile.ts';
import type { TrailSearch } from '../runtime/io.ts';
import { awsFailure } from './aws-failure.ts';
import { clientOptions } from './client-options.ts';

/**
 * CloudTrail answers two calls a second, with 50 events each, and keeps 90 days. `adaptive` waits as long as it is throttled.
 * https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
 */
export async function* lookUpSignatures({ region, from, to }: TrailSearch): AsyncGenerator<SignEvent> {
  const where = region === undefined ? {} : { region };
  const client = new CloudTrailClient({ ...clientOptions(), ...where, maxAttempts: 10, retryMode: 'adaptive' });
  try {
    let NextToken: string | undefined;
    do {
      const { Events: events = [], NextToken: next } = await client.send(
        new LookupEventsCommand({
          // It takes one attribute only; other services have events of this name too.
          LookupAttributes: [{ AttributeKey: 'EventName', AttributeValue: 'Sign' }],
          StartTime: new Date(from),
          EndTime: new Date(to),
          ...(NextToken === undefined ? {} : { NextToken }),
        }),
      );
      for (const { CloudTrailEvent: text = '' } of events) {
        const event = signEventOf(parsedObject(text));
        if (event !== undefined) yield event;
      }
      NextToken = next;
    } while (NextToken !== undefined);
  } catch (error) {
    throw awsFailure('CloudTrail', error, 'cloudtrail:LookupEvents');
  } finally {
    client.destroy();
  }
}
