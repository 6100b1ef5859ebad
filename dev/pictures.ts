/** `npm run pictures`: writes the generated pictures of docs/pictures/ from their sources, and records the demo again if its output changed. */
import { readFileSync, writeFileSync } from 'node:fs';
import { main } from './demo.ts';
import { createTerminal } from './demo/terminal.ts';
import { generatedPictures, recordingPath } from './pictures/generated.ts';
import { withoutChanging } from './pictures/recording.ts';

let output = '';
const code = await main(['hijack'], { terminal: createTerminal((text) => (output += text), true) });
if (code !== 0) throw new Error(`the demo failed:\n${output}`);
if (withoutChanging(output) !== withoutChanging(readFileSync(recordingPath, 'utf8')))
  writeFileSync(recordingPath, output);
for (const { path, svg } of generatedPictures()) writeFileSync(path, svg);
