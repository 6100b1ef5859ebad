import { rulesFingerprint } from '../../../../../core/configuration/rules-fingerprint.ts';
import { startAnsweringServer } from '../../../../harness/kubernetes/answering-server.ts';
import { clusterOf, healthyWorld, inCluster, lease, staleLease, table, yaml } from '../../status/world.ts';
import type { Goldens } from '../session.ts';

const files = { 'countersign.yaml': yaml };

export const goldens: Goldens = {
  async status({ run, call }) {
    call('RULES', rulesFingerprint(clusterOf(yaml)).slice(0, 16));
    const healthy = await startAnsweringServer(inCluster);
    call('KUBECONFIG', healthy.kubeconfig);
    await run('status --kubeconfig KUBECONFIG', { files, world: healthyWorld() });
    const stopped = await startAnsweringServer({ ...inCluster, [lease]: [200, staleLease] });
    call('OTHER', stopped.kubeconfig);
    const lookAtTable = async () => ({ ...table, pointInTimeRecovery: false });
    await run('status --kubeconfig OTHER', { files, world: { ...healthyWorld(), lookAtTable } });
    await run('status --skip-kubernetes -o json', { files, world: healthyWorld(), lines: 24 });
    await run('status');
  },
};
