/** The environment of the command line for one login at an emulator, without any other login of this machine. */
import type { Emulator } from './emulator.ts';
import type { SessionCredentials } from './ministack-deployment.ts';

export function operatorLogin(
  { url, client: { region } }: Pick<Emulator, 'url' | 'client'>,
  { accessKeyId, secretAccessKey, sessionToken }: SessionCredentials,
): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL: url,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
    AWS_CONFIG_FILE: '/nonexistent',
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}
