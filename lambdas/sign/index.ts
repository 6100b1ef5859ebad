/** Connects the sign handler to its bundled configuration and to its environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { invocationClientConfig } from '../../adapters/lambda/invocation.ts';
import { ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { kmsClientConfig } from '../../adapters/aws/kms-client.ts';
import { bundledFingerprint, callersAllowed, clusterConfiguration } from '../../adapters/lambda/bundle.ts';
import { checkCaller } from '../../adapters/lambda/caller.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { writeLog } from '../../adapters/lambda/log.ts';
import { serveOrRefuse } from '../../adapters/lambda/misconfigured.ts';
import { readSettings } from './env.ts';
import { createSignService } from './service.ts';

export const handler: HttpHandler = serveOrRefuse(() => {
  const cluster = clusterConfiguration();
  const settings = readSettings(process.env, cluster);
  return createSignService(cluster, settings, {
    dynamodb: new DynamoDBClient(ledgerClientConfig),
    kms: new KMSClient(kmsClientConfig),
    // Created only if attest is called, since each client delays the first call.
    lambda: () => new LambdaClient(invocationClientConfig),
    caller: checkCaller(callersAllowed()),
    rulesSha256: bundledFingerprint(),
    now: Date.now,
    randomBytes,
    log: writeLog(settings.logLevel),
  });
});
