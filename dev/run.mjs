// Runs one of the project's programs on the pinned version of Node, after installing what is missing.
// Plain JavaScript for old Nodes: it is the first thing that runs on a fresh machine.
//   node dev/run.mjs [--here] <file.ts|name of a tool in node_modules/.bin> [arguments…]
// It runs in the checkout; with --here where the operator stands (npm names the folder in INIT_CWD).
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, 'node_modules', '.countersign-lock');

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(3);
}

/** node_modules is stale when it was not installed from this very lockfile. */
function install() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  process.stderr.write('Installing dependencies (npm ci, about 20 s the first time) …\n');
  // npm's engine warning is about the system's Node; the pinned one comes with this very install.
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (npm.error) fail(`npm could not be started (${npm.error.message}); Node comes with it: https://nodejs.org`);
  if (npm.status !== 0) fail('npm ci failed; see above. It needs the npm registry, or a mirror set in your ~/.npmrc.');
  writeFileSync(stamp, lock);
}

/** The pinned Node where npm has one for this machine, otherwise any system Node that is new enough. */
function pinnedNode() {
  const pinned = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node');
  if (process.platform === 'linux' && existsSync(pinned)) return pinned;
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  return fail(`Node 24 or newer is needed on ${process.platform}-${process.arch}; this is ${process.version}.`);
}

const words = process.argv.slice(2);
const here = words[0] === '--here' && words.shift() !== undefined;
const [target, ...args] = words;
if (target === undefined) fail('usage: node dev/run.mjs [--here] <file.ts|tool> [arguments…]');
install();
const node = pinnedNode();
const program = /\.[cm]?[jt]s$/.test(target) ? join(root, target) : join(root, 'node_modules', '.bin', target);
const child = spawn(node, [program, ...args], {
  cwd: here ? (process.env.INIT_CWD ?? process.cwd()) : root,
  stdio: 'inherit',
  // Programs that it starts by name find the same Node and tools.
  env: { ...process.env, PATH: `${dirname(node)}:${join(root, 'node_modules', '.bin')}:${process.env.PATH ?? ''}` },
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => fail(`could not start ${target}: ${error.message}`));
child.on('exit', (code, signal) => {
  if (signal !== null) {
    // End with the same signal, so that the caller sees it; without listeners, so that it is not caught again.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else process.exit(code ?? 1);
});
