/** Variables that change how a process loads its code. The two Java names beside the known one act just like it. */
export const envReserved: readonly string[] = [
  'LD_*',
  'DYLD_*',
  'BASH_ENV',
  'GCONV_PATH',
  'NODE_OPTIONS',
  'PYTHONSTARTUP',
  'PERL5OPT',
  'RUBYOPT',
  'JAVA_TOOL_OPTIONS',
  'JDK_JAVA_OPTIONS',
  '_JAVA_OPTIONS',
]

/**
 * Annotations through which a Pod steers what runs beneath or beside it. A domain stands for its subdomains too;
 * keys that some runtimes write in reverse order have no slash, hence the entries with a trailing `*`.
 */
export const runtimeAnnotations: readonly string[] = [
  // Kata Containers
  'io.katacontainers.*',
  'katacontainers.io',
  // gVisor
  'dev.gvisor.*',
  'gvisor.dev',
  // CRI, CRI-O, containerd, OCI runtimes, node resource plugins
  'io.kubernetes.*',
  'crio.io',
  'cri-o.io',
  'io.containerd.*',
  'containerd.io',
  'run.oci.*',
  'org.systemd.*',
  'org.criu.*',
  'module.wasm.image',
  'nri.io',
  // Multus, Cilium, Calico, OVN
  'cni.cncf.io',
  'multus-cni.io',
  'cilium.io',
  'io.cilium.*',
  'projectcalico.org',
  'ovn.org',
  'kubeovn.io',
  // Service meshes and agent injectors
  'istio.io',
  'linkerd.io',
  'kuma.io',
  'openservicemesh.io',
  'dapr.io',
  'hashicorp.com',
  // Cloud identity and cloud networks
  'amazonaws.com',
  'k8s.aws',
  'azure.workload.identity',
  'aadpodidbinding',
  'azure.com',
  'gke.io',
  'cloud.google.com',
  'aliyun.com',
  'alibabacloud.com',
  // Device plugins
  'nvidia.com',
]
