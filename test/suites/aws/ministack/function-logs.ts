import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import type { MiniStackDeployment } from '../../../harness/aws/ministack-deployment.ts';

/** What the functions wrote. The answer itself says nothing about permissions: that is for operators. */
export async function logOf({ emulator }: Pick<MiniStackDeployment, 'emulator'>): Promise<string> {
  const { region, credentials } = emulator.client;
  const signer = new SignatureV4({ service: 'logs', region, credentials, sha256: Sha256 });
  async function ask<T>(operation: string, input: object): Promise<T> {
    const { host, hostname, protocol } = new URL(emulator.url);
    const target = `Logs_20140328.${operation}`;
    const headers = { host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target };
    const body = JSON.stringify(input);
    const signed = await signer.sign({ method: 'POST', protocol, hostname, path: '/', query: {}, headers, body });
    const answer = await fetch(emulator.url, { method: 'POST', headers: signed.headers, body });
    if (!answer.ok) throw new Error(`${operation}: ${answer.status}`);
    return (await answer.json()) as T;
  }
  const { logGroups } = await ask<{ logGroups: { logGroupName: string }[] }>('DescribeLogGroups', {});
  const lines: string[] = [];
  for (const { logGroupName } of logGroups) {
    const { events } = await ask<{ events: { message: string }[] }>('FilterLogEvents', { logGroupName });
    lines.push(...events.map(({ message }) => message));
  }
  return lines.join('\n');
}
