/** Wires the attest handler to what its bundle was made with, and to the environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ledgerClientConfig } from '../../adapters/dynamodb/ledger.ts';
import { connectSharedEc2, ec2Endpoint } from '../../adapters/aws/ec2.ts';
import { checkCaller } from '../../adapters/lambda/caller.ts';
import type { HttpHandler } from '../../adapters/lambda/http.ts';
import { writeLog } from '../../adapters/lambda/log.ts';
import { refuseToServe } from '../../adapters/lambda/misconfigured.ts';
import { madeForEmulatedAws, redirects } from '../../adapters/lambda/redirects.ts';
import { stsEndpoint } from '../../adapters/aws/sts.ts';
import { callersAllowed, clusterConfiguration, regionCertificates } from './configuration.ts';
import { parseSettings } from './env.ts';
import { createAttestService } from './service.ts';
import type { AttestFunction } from './service.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** Once for each process; thrown errors would only make Lambda start another, with nothing in the log to filter on. */
function connect(): AttestFunction | HttpHandler {
  try {
    const cluster = clusterConfiguration();
    const parsed = parseSettings(process.env, cluster);
    const problems = [...redirects(process.env), ...(parsed.ok ? [] : parsed.problems)];
    if (!parsed.ok || problems.length > 0) return refuseToServe(problems, writeLog('info'));
    // The SDK's own clients read theirs themselves.
    const endpoint = madeForEmulatedAws() ? process.env['AWS_ENDPOINT_URL_STS'] : undefined;
    return createAttestService(cluster, parsed.settings, {
      dynamodb: new DynamoDBClient(ledgerClientConfig),
      aws: {
        sts: stsEndpoint(endpoint === undefined ? {} : { endpoint }),
        ec2: ec2Endpoint(connectSharedEc2),
        regionCertificates: regionCertificates(),
      },
      caller: checkCaller(callersAllowed()),
      now: Date.now,
      randomBytes,
      log: writeLog(parsed.settings.logLevel),
    });
  } catch (error) {
    return refuseToServe([errorMessage(error)], writeLog('info'));
  }
}

export const handler: AttestFunction | HttpHandler = connect();
