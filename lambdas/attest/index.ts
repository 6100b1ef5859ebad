/** Wires the attest handler to what its bundle was made with, and to the environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ledgerClientConfig } from '../../adapters/dynamodb-ledger.ts';
import { connectSharedEc2, ec2Endpoint } from '../../adapters/ec2.ts';
import type { HttpHandler } from '../../adapters/lambda-http.ts';
import { writeLog } from '../../adapters/lambda-log.ts';
import { refuseToServe } from '../../adapters/lambda-misconfigured.ts';
import { stsEndpoint } from '../../adapters/sts.ts';
import { clusterConfiguration, regionCertificates } from './configuration.ts';
import { parseSettings } from './env.ts';
import { createAttestService } from './service.ts';

/** Once for each process; thrown errors would only make Lambda start another, with nothing in the log to filter on. */
function connect(): HttpHandler {
  try {
    const cluster = clusterConfiguration();
    const parsed = parseSettings(process.env, cluster);
    if (!parsed.ok) return refuseToServe(parsed.problems, writeLog('info'));
    // Only tests set it: no synthesised function has it. The SDK's own clients read theirs themselves.
    const endpoint = process.env['AWS_ENDPOINT_URL_STS'];
    return createAttestService(cluster, parsed.settings, {
      dynamodb: new DynamoDBClient(ledgerClientConfig),
      aws: {
        sts: stsEndpoint(endpoint === undefined ? {} : { endpoint }),
        ec2: ec2Endpoint(connectSharedEc2),
        regionCertificates: regionCertificates(),
      },
      now: Date.now,
      randomBytes,
      log: writeLog(parsed.settings.logLevel),
    });
  } catch (error) {
    return refuseToServe([error instanceof Error ? error.message : String(error)], writeLog('info'));
  }
}

export const handler: HttpHandler = connect();
