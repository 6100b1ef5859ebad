#!/usr/bin/env node
import { exits, main } from './main.ts';

main(process.argv.slice(2)).then(
  // Not left to an empty event loop: a connection that hangs would keep the kubelet waiting.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`kubelet-authenticator: unexpected: ${error instanceof Error ? error.message : 'unknown'}\n`);
    process.exit(exits.temporary);
  },
);
