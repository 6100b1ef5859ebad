#!/usr/bin/env node
// Starts the command line on this Node if it is new enough, otherwise on the pinned one that npm ci installs.
// Plain JavaScript, so that an old Node can run it.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
  } catch {
    process.stderr.write(
      `countersign: needs Node 24 or newer, this is ${process.version}; npm ci installs one on Linux\n`,
    );
    process.exit(3);
  }
}

const entry = new URL('countersign.ts', import.meta.url);
if (Number(process.versions.node.split('.')[0]) >= 24) await import(entry.href);
else {
  const { status, signal } = spawnSync(pinnedNode(), [fileURLToPath(entry), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  if (signal !== null) process.kill(process.pid, signal);
  process.exitCode = status ?? 5;
}
