/** Wires the sign handler to what its bundle was made with, and to the environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { invocationClientConfig } from '../../adapters/lambda/invocation.ts';
import { ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { kmsClientConfig } from '../../adapters/aws/kms-signer.ts';
import { checkCaller } from '../../adapters/lambda/caller.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { writeLog } from '../../adapters/lambda/log.ts';
import { refuseToServe } from '../../adapters/lambda/misconfigured.ts';
import { redirects } from '../../adapters/lambda/redirects.ts';
import { callersAllowed, clusterConfiguration } from './configuration.ts';
import { parseSettings } from './env.ts';
import { createSignService } from './service.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** Once for each process; thrown errors would only make Lambda start another, with nothing in the log to filter on. */
function connect(): HttpHandler {
  try {
    const cluster = clusterConfiguration();
    const parsed = parseSettings(process.env, cluster);
    const problems = [...redirects(process.env), ...(parsed.ok ? [] : parsed.problems)];
    if (!parsed.ok || problems.length > 0) return refuseToServe(problems, writeLog('info'));
    return createSignService(cluster, parsed.settings, {
      dynamodb: new DynamoDBClient(ledgerClientConfig),
      kms: new KMSClient(kmsClientConfig),
      // Made only where somebody must be asked: each client costs the first call its time.
      lambda: () => new LambdaClient(invocationClientConfig),
      caller: checkCaller(callersAllowed()),
      now: Date.now,
      randomBytes,
      log: writeLog(parsed.settings.logLevel),
    });
  } catch (error) {
    return refuseToServe([errorMessage(error)], writeLog('info'));
  }
}

export const handler: HttpHandler = connect();
