/** Wires the sign handler to what its bundle was made with, and to the environment. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { ledgerClientConfig } from '../../adapters/dynamodb-ledger.ts';
import { kmsClientConfig } from '../../adapters/kms-signer.ts';
import type { HttpHandler } from '../../adapters/lambda-http.ts';
import { clusterConfiguration } from './configuration.ts';
import { parseSettings } from './env.ts';
import type { LogLevel } from './env.ts';
import type { CallLogEntry } from '../../adapters/lambda-log.ts';
import { createSignService, refuseToServe } from './service.ts';

/** Once for each process; thrown errors would only make Lambda start another, with nothing in the log to filter on. */
function connect(): HttpHandler {
  try {
    const cluster = clusterConfiguration();
    const parsed = parseSettings(process.env, cluster);
    if (!parsed.ok) return refuseToServe(parsed.problems, writeLog('info'));
    return createSignService(cluster, parsed.settings, {
      dynamodb: new DynamoDBClient(ledgerClientConfig),
      kms: new KMSClient(kmsClientConfig),
      now: Date.now,
      randomBytes,
      log: writeLog(parsed.settings.logLevel),
    });
  } catch (error) {
    return refuseToServe([error instanceof Error ? error.message : String(error)], writeLog('info'));
  }
}

const severity: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2 };

/** One JSON line each, as pino writes them: alarms filter on `level`, `why` and `codes`. */
function writeLog(lowest: LogLevel): (entry: CallLogEntry) => void {
  return (entry) => {
    if (severity[entry.level] < severity[lowest]) return;
    process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
  };
}

export const handler: HttpHandler = connect();
