import { startDevServer } from '../../../harness/stack/stack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { describeSigning } from './signing-suite.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

describeSigning({ by: 'the dev server', skip, start: () => startDevServer() });
