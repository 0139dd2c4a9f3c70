{{- /* The controls of Pod Security `baseline` in CEL, as a list: which value allows it, its expression, its words.
POD and CONTAINERS stand for the pod's specification and for all of its containers. */ -}}
{{- define "streamapp-operator.baseline" -}}
- allow: allowHost
  expression: "!POD.?volumes.orValue([]).exists(each, has(each.hostPath))"
  words: a volume of type hostPath is not allowed here; use spec.state, or an emptyDir
- allow: allowHost
  expression: "!POD.?hostNetwork.orValue(false) && !POD.?hostPID.orValue(false) && !POD.?hostIPC.orValue(false)"
  words: hostNetwork, hostPID and hostIPC are not allowed here; leave them out
- allow: allowHost
  expression: "!CONTAINERS.exists(each, each.?ports.orValue([]).exists(port, port.?hostPort.orValue(0) != 0))"
  words: hostPort is not allowed here; leave it out
- allow: allowHost
  expression: >-
    CONTAINERS.all(each, [each.?livenessProbe, each.?readinessProbe, each.?startupProbe, each.?lifecycle.?postStart, each.?lifecycle.?preStop].all(probe, probe.?httpGet.?host.orValue("") == "" && probe.?tcpSocket.?host.orValue("") == ""))
  words: a probe or lifecycle hook must not name a host; leave it out, so that it asks the pod itself
- allow: allowPrivileged
  expression: "!CONTAINERS.exists(each, each.?securityContext.?privileged.orValue(false))"
  words: a privileged container is not allowed here; leave it out
- allow: allowPrivileged
  expression: >-
    CONTAINERS.all(each, each.?securityContext.?capabilities.?add.orValue([]).all(one, one in ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"]))
  words: securityContext.capabilities.add has one that Pod Security baseline does not allow; leave it out
- allow: allowPrivileged
  expression: >-
    !POD.?securityContext.?windowsOptions.?hostProcess.orValue(false) && !CONTAINERS.exists(each, each.?securityContext.?windowsOptions.?hostProcess.orValue(false))
  words: windowsOptions.hostProcess is not allowed here; leave it out
- allow: allowPrivileged
  expression: >-
    POD.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"] && CONTAINERS.all(each, each.?securityContext.?appArmorProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"])
  words: appArmorProfile must be RuntimeDefault or Localhost
- allow: allowPrivileged
  expression: >-
    METADATA.?annotations.orValue({}).all(key, !key.startsWith("container.apparmor.security.beta.kubernetes.io/") || METADATA.annotations[key] == "runtime/default" || METADATA.annotations[key].startsWith("localhost/"))
  words: an AppArmor annotation must be runtime/default or localhost/…
- allow: allowPrivileged
  expression: >-
    ([POD.?securityContext.?seLinuxOptions] + CONTAINERS.map(each, each.?securityContext.?seLinuxOptions)).all(one, one.?type.orValue("") in ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"] && one.?user.orValue("") == "" && one.?role.orValue("") == "")
  words: seLinuxOptions has a type, user or role that Pod Security baseline does not allow; leave it out
- allow: allowPrivileged
  expression: 'CONTAINERS.all(each, each.?securityContext.?procMount.orValue("Default") == "Default")'
  words: procMount must be Default
- allow: allowPrivileged
  expression: >-
    POD.?securityContext.?seccompProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"] && CONTAINERS.all(each, each.?securityContext.?seccompProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"])
  words: seccompProfile must be RuntimeDefault or Localhost
- allow: allowPrivileged
  expression: >-
    POD.?securityContext.?sysctls.orValue([]).all(one, one.name in ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"])
  words: securityContext.sysctls has one that Pod Security baseline does not allow; leave it out
{{- end }}

{{- /* An expression about the template that `template` names; takes `expression`, `template`. */ -}}
{{- define "streamapp-operator.baselineOf" -}}
{{- $containers := printf "(%s.?spec.?containers.orValue([]) + %s.?spec.?initContainers.orValue([]))" .template .template -}}
{{- .expression | replace "CONTAINERS" $containers | replace "POD" (printf "%s.?spec" .template) | replace "METADATA.annotations" (printf "%s.metadata.annotations" .template) | replace "METADATA" (printf "%s.?metadata" .template) -}}
{{- end }}
