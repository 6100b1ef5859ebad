/** `access.iam.domain` on MiniStack: the HTTP API answers under the operator's name, to the callers that it answers under its own. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { emulatedRegion } from '../../../harness/aws/emulator.ts';
import { requireTools } from '../../../tools/tools.ts';
import { askBehind, doors } from './doors.ts';

const { skip } = await requireTools('ministack');

const account = '000000000000';

describe.skipIf(skip)('an HTTP API with a DNS name of the operator', () => {
  let deployment: MiniStackDeployment;
  beforeAll(async () => {
    const domain = {
      name: 'sign.example.com',
      certificate: `arn:aws:acm:${emulatedRegion}:${account}:certificate/12345678-1234-1234-1234-123456789012`,
    };
    const principals = [`arn:aws:iam::${account}:role/relay-demo`];
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: { access: { iam: { principals, domain } } } }));
  });
  afterAll(() => deployment?.stop());

  test('has that name in its outputs, and the name that its DNS record leads to', () => {
    const { SignUrl: url, IamApiDomainTarget: target } = deployment.outputs['demo'] ?? {};
    expect(url).toBe('https://sign.example.com/v1/clusters/demo');
    expect(target).toMatch(/\.execute-api\./);
  });

  test('issues under that name to the caller role', async () => {
    const answer = await askBehind(deployment, doors.httpApi, await doors.httpApi.authorize(deployment));
    expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
  });

  test('answers the health check that curl signs by the command of docs/deploy.md', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/deploy.md'), 'utf8');
    const command = /^ *(curl --aws-sigv4 [^`]*)/m.exec(page)?.[1]?.trim() ?? '';
    expect(command).toContain('eu-central-1:execute-api');
    const { accessKeyId, secretAccessKey, sessionToken } = await deployment.caller('demo');
    const environment = {
      PATH: process.env['PATH'],
      SIGN_URL: 'http://sign.example.com/v1/clusters/demo',
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: sessionToken,
    };
    const here = `--silent --write-out '\\n%{http_code}' --noproxy '*' --connect-to ::127.0.0.1:${deployment.emulator.port}`;
    const run = async (text: string) => (await promisify(execFile)('sh', ['-c', text], { env: environment })).stdout;
    const signed = command.replace('eu-central-1', emulatedRegion).replace('curl ', `curl ${here} `);
    expect(await run(signed)).toMatch(/"cluster":\s*"demo"[^]*\n200$/);
    expect(await run(`curl ${here} "$SIGN_URL/healthz"`)).toMatch(/\n403$/);
  });

  test('refuses an unsigned call there', async () => {
    expect(await askBehind(deployment, doors.httpApi)).toMatchObject({ status: 403, outcome: null });
  });
});
