// Runs one of the project's programs on the pinned version of Node, after installing what is missing.
// Plain JavaScript for old Nodes: it is the first thing that runs on a fresh machine.
//   node dev/run.mjs [--here] <file.ts|name of a tool in node_modules/.bin> [arguments…]
// It runs in the checkout; with --here where the operator stands (npm names the folder in INIT_CWD).
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, 'node_modules', '.countersign-lock');
/** Not in node_modules, which npm ci removes. */
const lock = join(root, '.countersign', 'install.lock');

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(3);
}

/** node_modules is stale when it was not installed from this very lockfile. */
async function install() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const isInstalled = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
  if (isInstalled()) return;
  await lockInstallation();
  try {
    // Another command may have installed it meanwhile.
    if (!isInstalled()) await npmCi(() => writeFileSync(stamp, wanted));
  } finally {
    rmSync(lock, { force: true });
  }
}

/**
 * Two `npm ci` at once leave a broken node_modules. The holder of the lock touches it every second, so a lock that stays untouched
 * is of a process that was killed. Its npm may live on: the lock holds the id of that process.
 */
async function lockInstallation() {
  mkdirSync(dirname(lock), { recursive: true });
  for (let told = false; ;) {
    try {
      writeFileSync(lock, '', { flag: 'wx' });
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (isAbandoned(lock)) takeAway();
    else if (!told) {
      told = true;
      process.stderr.write('Another command installs the dependencies; waiting for it …\n');
    }
    await sleep(250);
  }
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function isAbandoned(file) {
  try {
    const age = Date.now() - statSync(file).mtimeMs;
    if (age < 5_000) return false;
    const npm = Number(readFileSync(file, 'utf8'));
    // After ten minutes another process may have the id.
    return age > 600_000 || npm === 0 || !isAlive(npm);
  } catch {
    return false; // the holder has removed it
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Renamed first: only one of those who wait gets it, and if it was a new one meanwhile, it is put back. */
function takeAway() {
  const mine = `${lock}.${process.pid}`;
  try {
    renameSync(lock, mine);
    if (!isAbandoned(mine)) linkSync(mine, lock);
  } catch {
    // another process was faster
  }
  rmSync(mine, { force: true });
}

function npmCi(done) {
  process.stderr.write('Installing dependencies (npm ci, 20 s to 2 min the first time) …\n');
  return new Promise((resolve) => {
    // npm's engine warning is about the system's Node; the pinned one comes with this very install.
    const npm = spawn('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: root,
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    });
    if (npm.pid !== undefined) writeFileSync(lock, String(npm.pid));
    let seconds = 0;
    const beat = setInterval(() => {
      seconds += 1;
      const now = new Date();
      utimesSync(lock, now, now);
      if (seconds % 10 === 0) process.stderr.write(`… ${seconds} s\n`);
    }, 1_000);
    const stopped = (message) => {
      rmSync(lock, { force: true });
      fail(message);
    };
    npm.on('error', ({ message }) =>
      stopped(`npm could not be started (${message}); Node comes with it: https://nodejs.org`),
    );
    npm.on('exit', (code) => {
      clearInterval(beat);
      if (code !== 0) stopped('npm ci failed; see above. It needs the npm registry, or a mirror set in your ~/.npmrc.');
      done();
      resolve();
    });
  });
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
await install();
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
