/** The real Io: files, clusters, AWS. Modules with heavy dependencies are loaded when a command needs them. */
import { maxInputBytes } from './runtime/io.ts';
import type { Io } from './runtime/io.ts';
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { userInfo } from 'node:os';

export function processIo(): Io {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    now: () => Date.now(),
    randomBytes,
    userName: () => userInfo().username,
    fileExists: existsSync,
    read: (path) => readInput(path),
    async callFunction(call) {
      const { callFunction } = await import('./aws/function-call.ts');
      return callFunction(call);
    },
    async openRegister(place) {
      const { openRegister } = await import('./register/open.ts');
      return openRegister(place, this);
    },
    async openTrace(place) {
      const { openTrace } = await import('./trace/open.ts');
      return openTrace(place, this);
    },
    async connectEc2() {
      const { ec2Endpoint, ec2Fleet } = await import('../adapters/aws/ec2.ts');
      return { ...ec2Endpoint(), ...ec2Fleet() };
    },
    async connectAccount(region) {
      const { connectAccount } = await import('./aws/connect-account.ts');
      return connectAccount(region);
    },
  };
}

async function readInput(path: string): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of path === '-' ? process.stdin : createReadStream(path)) {
    length += (chunk as Buffer).length;
    if (length > maxInputBytes) throw Object.assign(new Error('the file is too large'), { code: 'EFBIG' });
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
