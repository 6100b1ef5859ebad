/** AWS's own command line, without a home, a configuration or a network: it knows what it is told and no more. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { toolPath } from '../../../tools/tools.ts';

interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Rejects with what it prints when it fails. */
export async function aws(
  args: readonly string[],
  signedBy: Keys | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const python = await toolPath('aws-cli');
  const keys =
    signedBy === undefined
      ? {}
      : {
          AWS_ACCESS_KEY_ID: signedBy.accessKeyId,
          AWS_SECRET_ACCESS_KEY: signedBy.secretAccessKey,
          ...(signedBy.sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: signedBy.sessionToken }),
          AWS_EC2_METADATA_DISABLED: 'true',
        };
  const { stdout } = await promisify(execFile)(python, ['-m', 'awscli', '--output', 'json', ...args], {
    env: {
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_MAX_ATTEMPTS: '1',
      ...keys,
      ...env,
    },
    timeout: 60_000,
  });
  return JSON.parse(stdout);
}

/** `aws eks get-token`, which makes no call: it signs. */
export async function getToken(
  region: string,
  clusterName: string,
  signedBy: Keys | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const args = ['eks', 'get-token', '--region', region, '--cluster-name', clusterName];
  const credential = (await aws(args, signedBy, env)) as { status: { token: string } };
  return credential.status.token;
}
