/** In place of the program kubeadm: `certs generate-csr --kubeconfig-dir DIR --cert-dir DIR`. */
import { kubeadmCertificates } from '../../../../core/kubeadm/certificates.ts';
import { generate } from './control-plane.ts';

const [, , , kubeconfigs = '', , pki = ''] = process.argv.slice(2);
generate({ kubeconfigs, pki }, kubeadmCertificates);
