/** `npm run grafana`: writes deploy/grafana/countersign.json. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { grafanaDashboard } from './grafana.ts';

writeFileSync(resolve(import.meta.dirname, '../../deploy/grafana/countersign.json'), grafanaDashboard());
