/** Connects the attest handler to its bundled configuration and to its environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { connectSharedEc2, ec2Endpoint, ec2Fleet, endorsementKeyEndpoint } from '../../adapters/aws/ec2.ts';
import { callersAllowed, clusterConfiguration } from '../../adapters/lambda/bundle.ts';
import { checkCaller } from '../../adapters/lambda/caller.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { writeLog } from '../../adapters/lambda/log.ts';
import { serveOrRefuse } from '../../adapters/lambda/misconfigured.ts';
import { madeForEmulatedAws } from '../../adapters/lambda/redirects.ts';
import { stsEndpoint } from '../../adapters/aws/sts.ts';
import { fetchGoogleKeySet } from '../../adapters/google/key-set.ts';
import { lazyChallengeKey } from './lazy-challenge-key.ts';
import { readSettings } from './env.ts';
import { readsVms } from './google.ts';
import { regionCertificates } from './region-certificates.ts';
import { createAttestService } from './service.ts';
import type { AttestFunction } from './service.ts';

export const handler: AttestFunction | HttpHandler = serveOrRefuse(() => {
  const cluster = clusterConfiguration();
  const settings = readSettings(process.env, cluster);
  // Only for our own STS client: the SDK's clients read AWS_ENDPOINT_URL_… themselves.
  const endpoint = madeForEmulatedAws() ? process.env['AWS_ENDPOINT_URL_STS'] : undefined;
  return createAttestService(cluster, settings, {
    dynamodb: new DynamoDBClient(ledgerClientConfig),
    aws: {
      sts: stsEndpoint(endpoint === undefined ? {} : { endpoint }),
      ec2: ec2Endpoint(connectSharedEc2),
      fleet: ec2Fleet(connectSharedEc2),
      endorsementKeys: endorsementKeyEndpoint(connectSharedEc2),
      regionCertificates: regionCertificates(),
    },
    compute: readsVms(process.env, Date.now),
    googleKeySet: () => fetchGoogleKeySet(),
    challengeKey: (keyArn) =>
      lazyChallengeKey(async () => {
        const { kmsChallengeKey } = await import('../../adapters/aws/kms-challenge-key.ts');
        return kmsChallengeKey(keyArn);
      }),
    caller: checkCaller(callersAllowed()),
    now: Date.now,
    randomBytes,
    log: writeLog(settings.logLevel),
  });
});
