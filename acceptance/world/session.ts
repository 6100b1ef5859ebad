/** Sessions of the roles of a run. */
import { AssumeRoleCommand } from '@aws-sdk/client-sts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials } from './clients.ts';
import type { Site } from './step.ts';

export interface AssumeOptions {
  /** Default: the login. */
  readonly by?: Credentials;
  /** Transitive session tags, as EKS Pod Identity passes them. */
  readonly tags?: Readonly<Record<string, string>>;
  /** A new role is not known everywhere at once, so a refusal is tried again; not if the refusal is what is looked for. */
  readonly tries?: number;
}

export async function assume(site: Site, roleArn: string, options: AssumeOptions = {}): Promise<Credentials> {
  const { by, tags = {}, tries = 15 } = options;
  const { sts } = by === undefined ? site.aws : site.aws.as(by);
  const keys = Object.keys(tags);
  const command = new AssumeRoleCommand({
    RoleArn: roleArn,
    RoleSessionName: site.name,
    DurationSeconds: 900,
    ...(keys.length === 0
      ? {}
      : { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })), TransitiveTagKeys: keys }),
  });
  for (let left = tries; ; left -= 1)
    try {
      const { Credentials: made } = await sts.send(command);
      return {
        accessKeyId: made?.AccessKeyId ?? '',
        secretAccessKey: made?.SecretAccessKey ?? '',
        sessionToken: made?.SessionToken ?? '',
      };
    } catch (error) {
      if (left <= 1 || !(error instanceof Error) || error.name !== 'AccessDenied') throw error;
      await sleep(site.pollMilliseconds);
    }
}

export function roleArn({ place }: Pick<Site, 'place'>, name: string): string {
  return `arn:${place.partition}:iam::${place.account}:role/${name}`;
}
