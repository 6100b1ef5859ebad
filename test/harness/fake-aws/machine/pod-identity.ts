/**
 * The two ways in which EKS lends a pod a role: a projected service-account token that STS exchanges (start the fake STS
 * with it in `webIdentityTokens`), and the agent of Pod Identity on the node.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plain, startService, type Service } from '../service.ts';
import type { FakeAws } from '../world.ts';

export const projectedToken = 'a.projected.token';

export interface PodIdentity extends Service {
  /** Holds `projectedToken`. */
  readonly tokenFile: string;
}

/** The agent, for a pod whose role is `roleArn`. */
export async function startPodIdentityAgent(aws: FakeAws, roleArn: string): Promise<PodIdentity> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-pod-identity-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, projectedToken);
  const service = await startService(({ method, headers }) => {
    const role = aws.findRole(roleArn);
    if (method !== 'GET' || headers['authorization'] !== projectedToken || role === undefined) return plain(401, '{}');
    // With tags of the cluster, the namespace, the service account and so on.
    const session = aws.session(role, 'eks-prod-pod', 3_600, { transitiveTags: true });
    const { accessKeyId, secretAccessKey, sessionToken, expiresAt = 0 } = session;
    const expiration = new Date(expiresAt).toISOString();
    const json = {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      Token: sessionToken,
      Expiration: expiration,
    };
    return { status: 200, contentType: 'application/json', body: JSON.stringify(json) };
  });
  return {
    ...service,
    tokenFile,
    async close() {
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
