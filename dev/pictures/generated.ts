/** Each generated picture: its file, and what the file must hold. */
import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { drawRecording } from './recording.ts';
import { drawSequence } from './sequence.ts';

const folder = resolve(import.meta.dirname, '../../docs/pictures');
/** The output of one run of the demo, with the escape sequences of its colours. */
export const recordingPath = resolve(folder, 'hijack.ansi');

export const generatedPictures = (): readonly { readonly path: string; readonly svg: string }[] => [
  ...globSync('*.mmd', { cwd: folder })
    .sort()
    .map((file) => ({
      path: resolve(folder, file.replace('.mmd', '.svg')),
      svg: drawSequence(readFileSync(resolve(folder, file), 'utf8')),
    })),
  { path: resolve(folder, 'hijack.svg'), svg: drawRecording(readFileSync(recordingPath, 'utf8')) },
];
