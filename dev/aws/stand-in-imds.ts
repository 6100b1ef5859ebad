/**
 * The metadata service of one machine of the stand-in for AWS, on loopback: version 2 only, so each GET needs a token from a
 * PUT. AWS_EC2_METADATA_SERVICE_ENDPOINT directs a client to it instead of 169.254.169.254.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StandInMachine } from './stand-in-aws.ts';

export interface StandInImds {
  readonly url: string;
  /** The paths that it answered, in order. */
  readonly answered: readonly string[];
  readonly close: () => Promise<void>;
}

export async function startStandInImds({ metadata }: Pick<StandInMachine, 'metadata'>): Promise<StandInImds> {
  const tokens = new Set<string>();
  const answered: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url?.replace(/^\/latest\//, '') ?? '';
    const answer = (status: number, text: string): void => void response.writeHead(status).end(text);
    if (path === 'api/token' && request.method === 'PUT') {
      const token = randomBytes(40).toString('base64');
      tokens.add(token);
      return answer(200, token);
    }
    const token = request.headers['x-aws-ec2-metadata-token'];
    if (typeof token !== 'string' || !tokens.has(token)) return answer(401, '');
    const text = metadata(path);
    if (text === undefined || request.method !== 'GET') return answer(404, '');
    answered.push(path);
    return answer(200, text);
  });
  await new Promise<void>((ready) => {
    server.listen(0, '127.0.0.1', ready);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
