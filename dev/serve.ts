/** `npm run dev`: the command `countersign dev`. */
import { main } from '../cli/main.ts';
import { processIo } from '../cli/world.ts';

process.exit(await main(['dev', ...process.argv.slice(2)], processIo()));
