/** `npm run examples`: writes examples/cluster-api and examples/join from examples/source. */
import { writeFileSync } from 'node:fs';
import { renderedExamples } from './examples/render.ts';

for (const { path, text } of renderedExamples()) writeFileSync(path, text);
