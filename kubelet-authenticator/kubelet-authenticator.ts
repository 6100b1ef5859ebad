#!/usr/bin/env node
import { exits, main } from './main.ts';

main(process.argv.slice(2)).then(
  // Exits explicitly: an open connection would otherwise keep the process alive and the kubelet waiting.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`kubelet-authenticator: unexpected: ${error instanceof Error ? error.message : 'unknown'}\n`);
    process.exit(exits.temporary);
  },
);
