import { processIo } from './world.ts';
import { main } from './main.ts';

// Whoever reads our output may stop early (`| head`): that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
// Not process.exit: what was printed must reach a slow pipe.
process.exitCode = await main(process.argv.slice(2), processIo());
