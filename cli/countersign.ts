import { processIo } from './world.ts';
import { main } from './main.ts';

// The reader of the output may stop early (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
// process.exit would cut off output that a slow pipe has not read yet.
// Not `await`: the single executable is CommonJS, where a file cannot wait at its top level. A rejection still ends the process with its
// stack.
void main(process.argv.slice(2), processIo()).then((code) => {
  process.exitCode = code;
});
