{{- define "streamapp-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* The release's name where it says what this is, else both. */ -}}
{{- define "streamapp-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "streamapp-operator.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "streamapp-operator.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.selector" -}}
app.kubernetes.io/name: {{ include "streamapp-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streamapp-operator.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: streamapp-operator
{{- with omit .Values.labels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "helm.sh/chart" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/part-of" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.labels" -}}
{{ include "streamapp-operator.selector" . }}
{{ include "streamapp-operator.commonLabels" . }}
{{- end }}

{{- /* Of a whole line on, and nothing where there are none. */ -}}
{{- define "streamapp-operator.annotations" -}}
{{- with .Values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "streamapp-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* As admission sees who writes. */ -}}
{{- define "streamapp-operator.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "streamapp-operator.serviceAccount" . }}
{{- end }}

{{- define "streamapp-operator.subjects" -}}
- {kind: ServiceAccount, name: {{ include "streamapp-operator.serviceAccount" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}

{{- /* An image by digest where one is given, else by tag; takes `root` and the `name` of its values. */ -}}
{{- define "streamapp-operator.image" -}}
{{- $image := index .root.Values.images .name }}
{{- $registry := .root.Values.images.registry }}
{{- if not (or $image.repository $registry) }}
{{- fail "images.registry is empty, and no public registry has the images: push those of a release to your own and set images.registry, for example --set images.registry=registry.example/streamapp (docs/releases.md)" }}
{{- end }}
{{- $repository := default (printf "%s/%s" $registry .name) $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.leaseName" -}}
{{- default (include "streamapp-operator.fullname" .) .Values.leaderElection.leaseName }}
{{- end }}

{{- /* Something where `mode` is always, or auto and the cluster serves `api`; takes `root`, `mode`, `api`. */ -}}
{{- define "streamapp-operator.wanted" -}}
{{- if or (eq .mode "always") (and (eq .mode "auto") (.root.Capabilities.APIVersions.Has .api)) }}yes{{ end }}
{{- end }}

{{- /* Who the operator is, where it looks, and whose images it adds to pods: the same for it and for its check. */ -}}
{{- define "streamapp-operator.environment" -}}
- name: STREAMAPP_INSTANCE
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- if .Values.leaderElection.enabled }}
- name: STREAMAPP_LEASE_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- {name: STREAMAPP_LEASE_NAME, value: {{ include "streamapp-operator.leaseName" . | quote }}}
{{- end }}
- {name: STREAMAPP_NAMESPACES, value: {{ join "," .Values.watchNamespaces | quote }}}
- {name: STREAMAPP_INSTALLATION, value: {{ .Values.installation | quote }}}
- {name: STREAMAPP_SEED_IMAGE, value: {{ include "streamapp-operator.image" (dict "root" . "name" "seed") | quote }}}
- {name: STREAMAPP_AGENT_IMAGE, value: {{ include "streamapp-operator.image" (dict "root" . "name" "agent") | quote }}}
- {name: STREAMAPP_AGENT_KEY_FILE, value: /etc/streamapp/agent/keys}
- {name: STREAMAPP_CLUSTER_NAME, value: {{ .Values.clusterName | quote }}}
- {name: STREAMAPP_WATCH_NODES, value: {{ .Values.nodes.watch | quote }}}
- {name: STREAMAPP_NODE_TAINTS, value: {{ join "," .Values.nodes.taints | quote }}}
- {name: STREAMAPP_ALLOWED_BROKERS, value: {{ join "," .Values.kafka.allowedBrokers | quote }}}
{{- $bindings := list }}
{{- range .Values.applicationIds }}
{{- $bindings = append $bindings (printf "%s=%s" .pattern (join " " .namespaces)) }}
{{- end }}
- {name: STREAMAPP_APPLICATION_IDS, value: {{ join "," $bindings | quote }}}
- {name: STREAMAPP_RESTORES_PER_CLUSTER, value: {{ int64 .Values.restores.perCluster | quote }}}
- {name: STREAMAPP_LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
{{- range $name, $value := .Values.settings }}
- {name: {{ printf "STREAMAPP_%s" (snakecase $name | upper) }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- /* What Pod Security `restricted` asks for. */ -}}
{{- define "streamapp-operator.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "streamapp-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end }}
