/** The real Io: files, clusters, AWS. Modules with heavy dependencies are loaded when a command needs them. */
import { wantsColours } from './output/colours.ts';
import { maxInputBytes } from './runtime/io.ts';
import { CommandFailure, exitCodes } from './runtime/exit.ts';
import type { Io } from './runtime/io.ts';
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { dirname, join } from 'node:path';

/** Put in by deploy/cli/build.ts; not declared in a checkout. */
declare const COUNTERSIGN_COMMIT: string | undefined;

export function processIo(): Io {
  return {
    out: (text) => void process.stdout.write(text),
    outFields: (fields) => void process.stdout.write(`${fields.join('\t')}\n`),
    err: (text) => void process.stderr.write(text),
    colours: wantsColours(process.stdout.isTTY, process.env),
    program: {
      ...(typeof COUNTERSIGN_COMMIT === 'string' ? { commit: COUNTERSIGN_COMMIT } : {}),
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    },
    environment: process.env,
    now: () => Date.now(),
    pause: (milliseconds) => setTimeout(milliseconds),
    randomBytes,
    userName: () => userInfo().username,
    fileExists: existsSync,
    ask: process.stdin.isTTY && process.stdout.isTTY ? askAtTerminal : undefined,
    writeNew,
    read: (path) => readInput(path),
    lines: (path) => readLines(path),
    files: async (folder) => {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
      return files.toSorted();
    },
    async *lookUpSignatures(search) {
      const { lookUpSignatures } = await import('./aws/signatures.ts');
      yield* lookUpSignatures(search);
    },
    async callFunction(call) {
      const { callFunction } = await import('./aws/function-call.ts');
      return callFunction(call);
    },
    async connectKey(keyArn) {
      const { connectKey } = await import('./aws/key-import.ts');
      return connectKey(keyArn);
    },
    async openRegister(place) {
      const { openRegister } = await import('./register/open.ts');
      return openRegister(place, this);
    },
    async openTrace(place) {
      const { openTrace } = await import('./trace/open.ts');
      return openTrace(place, this);
    },
    async openRevocations(place) {
      const { openRevocations } = await import('./revocation/open.ts');
      return openRevocations(place, this);
    },
    async readHealth(call) {
      const { readHealth } = await import('./status/read-health.ts');
      return readHealth(call, this);
    },
    async lookAtTable(place) {
      const { lookAtTable } = await import('./status/look-at-table.ts');
      return lookAtTable(place);
    },
    async stackOutputs({ cluster, region }) {
      const { deployedOutputs } = await import('./aws/account.ts');
      return deployedOutputs(cluster, region === undefined ? {} : { region });
    },
    async connectEc2() {
      const { ec2Endpoint, ec2Fleet } = await import('../adapters/aws/ec2.ts');
      return { ...ec2Endpoint(), ...ec2Fleet() };
    },
    async connectAccount(region) {
      const { connectAccount } = await import('./aws/connect-account.ts');
      return connectAccount(region);
    },
    async serveDev(settings) {
      const { serveDev } = await import('../dev/serve/dev-server.ts');
      return serveDev(settings, this);
    },
  };
}

async function askAtTerminal(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Without an answer (Ctrl-D) the promise would never settle.
  const closed = new Promise<never>((_, reject) => {
    terminal.once('close', () => reject(new CommandFailure(exitCodes.usage, 'no answer; nothing was written')));
  });
  closed.catch(() => {});
  try {
    return await Promise.race([terminal.question(question), closed]);
  } finally {
    terminal.close();
  }
}

async function writeNew(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text, { flag: 'wx' });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    if (code === 'EEXIST')
      throw new CommandFailure(exitCodes.conflict, `there is a ${path} already; it was not changed`);
    throw new CommandFailure(exitCodes.configuration, `${path} cannot be written (${code})`);
  }
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

/** Not node:readline, which reads a line of any length into memory. */
async function* readLines(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of path === '-' ? process.stdin : createReadStream(path)) {
    const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxInputBytes) throw Object.assign(new Error('a line is too long'), { code: 'EFBIG' });
    yield* lines;
  }
  if (rest !== '') yield rest;
}
