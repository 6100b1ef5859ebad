import { rulesFingerprint } from '../../../../../core/configuration/rules-fingerprint.ts';
import { startAnsweringServer } from '../../../../harness/kubernetes/answering-server.ts';
import { apiServer, viewOf } from '../../doctor/world.ts';
import { clusterOf, healthyWorld, inCluster, yaml } from '../../status/world.ts';
import type { Goldens } from '../session.ts';

const files = { 'countersign.yaml': yaml };
const world = { ...healthyWorld(), connectAccount: async () => viewOf() };

export const goldens: Goldens = {
  async doctor({ run, call }) {
    const { kubeconfig, url } = await startAnsweringServer({ ...inCluster, ...apiServer });
    call('KUBECONFIG', kubeconfig);
    call('SERVER', url);
    call('NODE', process.versions.node);
    call('RULES', rulesFingerprint(clusterOf(yaml)).slice(0, 16));
    await run('doctor --kubeconfig KUBECONFIG', { files, world });
    const wrong = { 'countersign.yaml': yaml.replace('maxTtl', 'maxTTL') };
    await run('doctor --skip-kubernetes', { files: wrong, world });
    await run('doctor --skip-aws --skip-kubernetes -o json', { files, world });
    await run('doctor --cluster test --config countersign.yaml', { files, world });
  },
};
