{{- /* The pipeline's CronJobs: names, what is refused, and the pod that both have. */ -}}

{{- /* A CronJob's name may have 52 characters, and one of ours ends with -analytics-report. */ -}}
{{- define "streamapp-operator.analyticsName" -}}
{{- printf "%s-analytics" (include "streamapp-operator.fullname" . | trunc 35 | trimSuffix "-") }}
{{- end }}

{{- /* No label of the operator's own pods: neither its Service nor its budget may count these. */ -}}
{{- define "streamapp-operator.analyticsSelector" -}}
app.kubernetes.io/name: {{ include "streamapp-operator.name" . | trunc 42 | trimSuffix "-" }}-analytics
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streamapp-operator.analyticsLabels" -}}
{{ include "streamapp-operator.analyticsSelector" . }}
{{ include "streamapp-operator.commonLabels" . }}
{{- end }}

{{- /* files or kafka. */ -}}
{{- define "streamapp-operator.analyticsSource" -}}
{{- if ne .Values.analytics.source "auto" }}
{{- .Values.analytics.source }}
{{- else }}
{{- ternary "files" "kafka" (not (empty .Values.record.volume.existingClaim)) }}
{{- end }}
{{- end }}

{{- /* Not empty if the job writes insight. */ -}}
{{- define "streamapp-operator.writesInsight" -}}
{{- if and .Values.analytics.enabled .Values.insight.configMap .Values.insight.write }}yes{{ end }}
{{- end }}

{{- /* Refuses what no run could work with. */ -}}
{{- define "streamapp-operator.analyticsChecked" -}}
{{- $record := .Values.record }}
{{- with .Values.analytics }}
{{- if not $record.enabled }}
{{- fail "analytics.enabled: there is no flight record to read while record.enabled is false: set that to true, or this to false" }}
{{- end }}
{{- if not .tables.existingClaim }}
{{- fail "analytics.tables.existingClaim: tables and report need a volume that outlives a run: make a PersistentVolumeClaim in the release's namespace (docs/analytics.md has one), and name it here" }}
{{- end }}
{{- if and (not $record.volume.existingClaim) (not $record.kafka.bootstrapServers) }}
{{- fail "analytics.enabled: the flight record lies in an emptyDir of each of the operator's pods, which no other pod can read: name a claim in record.volume.existingClaim, or brokers in record.kafka.bootstrapServers" }}
{{- end }}
{{- $source := include "streamapp-operator.analyticsSource" $ }}
{{- if and (eq $source "files") (not $record.volume.existingClaim) }}
{{- fail "analytics.source: there are no files that another pod can read: name a claim in record.volume.existingClaim, or take kafka" }}
{{- end }}
{{- if and (eq $source "kafka") (not $record.kafka.bootstrapServers) }}
{{- fail "analytics.source: the record is sent to no topic: name brokers in record.kafka.bootstrapServers, or take files" }}
{{- end }}
{{- if and (eq $source "files") (eq $record.volume.accessMode "ReadWriteOncePod") }}
{{- fail "analytics.source: a claim with ReadWriteOncePod is the operator's pod's alone, and a run would wait for it for ever: take a claim with ReadWriteOnce or ReadWriteMany, or send the record to a topic and set this to kafka" }}
{{- end }}
{{- $limit := dig "limits" "memory" "" (default dict .resources) | toString }}
{{- if regexMatch "^[0-9]+[MG]i$" $limit }}
{{- $heap := mul (regexFind "^[0-9]+" .memory | int64) (ternary 1024 1 (hasSuffix "g" .memory)) }}
{{- $room := mul (regexFind "^[0-9]+" $limit | int64) (ternary 1024 1 (hasSuffix "Gi" $limit)) }}
{{- if lt $room (add $heap 1024) }}
{{- fail (printf "analytics.resources: a limit of %s has no room for a heap of %s (analytics.memory) and the 1 GiB that Spark needs beside it, and a run would be killed: raise analytics.resources.limits.memory, or lower analytics.memory" $limit .memory) }}
{{- end }}
{{- end }}
{{- if and (include "streamapp-operator.writesInsight" $) (eq $.Values.insight.configMap (include "streamapp-operator.analyticsName" $)) }}
{{- fail "insight.configMap: the chart has another ConfigMap of that name: choose another one" }}
{{- end }}
{{- if eq .tables.existingClaim $record.volume.existingClaim }}
{{- fail "analytics.tables.existingClaim: it is the claim of the record, of which the operator reckons the room for its files alone: name another one" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What a run is started with. */ -}}
{{- define "streamapp-operator.analyticsArguments" -}}
{{- with .Values.analytics }}
- run
{{- if eq (include "streamapp-operator.analyticsSource" $) "files" }}
- /var/lib/streamapp/record
{{- else }}
- {{ printf "--kafka=%s" $.Values.record.kafka.bootstrapServers | quote }}
- {{ printf "--topic=%s" $.Values.record.kafka.topic | quote }}
{{- if $.Values.record.kafka.configSecret }}
- --kafka-properties=/etc/streamapp/record-kafka
{{- end }}
{{- end }}
- --root=/var/lib/streamapp/tables
- {{ printf "--master=local[%d]" (int .cores) | quote }}
- {{ printf "--memory=%s" .memory | quote }}
- {{ printf "--days=%d" (int .report.days) | quote }}
- {{ printf "--apps=%d" (int .report.apps) | quote }}
{{- if include "streamapp-operator.writesInsight" $ }}
- {{ printf "--insight-config-map=%s/%s" $.Release.Namespace $.Values.insight.configMap | quote }}
- {{ printf "--insight-cluster=%s" $.Values.clusterName | quote }}
{{- end }}
{{- range .args }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The template of a job's pod; takes `root`, `run` (all of it) or else only what fetches the report. */ -}}
{{- define "streamapp-operator.analyticsPod" -}}
{{- $root := .root }}
{{- $files := and .run (eq (include "streamapp-operator.analyticsSource" $root) "files") }}
{{- $secret := and .run (not $files) $root.Values.record.kafka.configSecret }}
{{- $named := and $root.Values.runAsUser (ne (int $root.Values.runAsUser) 10003) }}
metadata:
  labels:
    {{- include "streamapp-operator.analyticsLabels" $root | nindent 4 }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "streamapp-operator.analyticsName" $root }}
  # A token only to write insight, with no other right.
  automountServiceAccountToken: {{ and .run (not (empty (include "streamapp-operator.writesInsight" $root))) }}
  enableServiceLinks: false
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.analytics.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.analytics.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and $files (ne $root.Values.record.volume.accessMode "ReadWriteMany") }}
  # The record's volume is where the operator's pod is, and nowhere else.
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "streamapp-operator.selector" $root | nindent 14 }}
  {{- end }}
  securityContext:
    {{- include "streamapp-operator.podSecurity" $root | nindent 4 }}
    {{- with $root.Values.runAsUser }}
    # A volume that is made new belongs to root.
    fsGroup: {{ . }}
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
  containers:
    - name: analytics
      image: {{ include "streamapp-operator.image" (dict "root" $root "name" "analytics") | quote }}
      imagePullPolicy: {{ $root.Values.images.pullPolicy }}
      {{- if .run }}
      args:
        {{- include "streamapp-operator.analyticsArguments" $root | nindent 8 }}
      {{- else }}
      # Packed, because a node keeps only the newest 10 MiB of a log.
      command:
        - sh
        - -c
        - |
          test -f "$REPORT" || {
            echo "error: $REPORT: there is no report yet" >&2
            echo "cause: no run of CronJob $CRONJOB has come to its end" >&2
            echo "next:  kubectl create job first --from=cronjob/$CRONJOB --namespace $NAMESPACE, and see its log" >&2
            exit 1
          }
          gzip --stdout "$REPORT" | base64
      env:
        - {name: REPORT, value: /var/lib/streamapp/tables/report.html}
        - {name: CRONJOB, value: {{ include "streamapp-operator.analyticsName" $root | quote }}}
        - {name: NAMESPACE, value: {{ $root.Release.Namespace | quote }}}
      {{- end }}
      # What went wrong is said in the last lines.
      terminationMessagePolicy: FallbackToLogsOnError
      resources:
        {{- if .run }}
        {{- toYaml $root.Values.analytics.resources | nindent 8 }}
        {{- else }}
        requests: {cpu: 10m, memory: 32Mi}
        limits: {memory: 128Mi}
        {{- end }}
      securityContext:
        {{- include "streamapp-operator.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: tables, mountPath: /var/lib/streamapp/tables{{ if not .run }}, readOnly: true{{ end }}}
        {{- if $files }}
        - {name: record, mountPath: /var/lib/streamapp/record, readOnly: true}
        {{- end }}
        {{- if $secret }}
        - {name: record-kafka, mountPath: /etc/streamapp/record-kafka, readOnly: true}
        {{- end }}
        {{- if and .run $named }}
        - {name: passwd, mountPath: /etc/passwd, subPath: passwd, readOnly: true}
        {{- end }}
  volumes:
    # What Spark sorts and joins beyond its memory.
    - name: tmp
      emptyDir: {sizeLimit: {{ $root.Values.analytics.scratch | quote }}}
    - name: tables
      persistentVolumeClaim: {claimName: {{ $root.Values.analytics.tables.existingClaim }}}
    {{- if $files }}
    - name: record
      persistentVolumeClaim: {claimName: {{ $root.Values.record.volume.existingClaim }}}
    {{- end }}
    {{- if $secret }}
    # Without it a run says so, and does not wait for it.
    - name: record-kafka
      secret: {secretName: {{ $root.Values.record.kafka.configSecret }}, optional: true}
    {{- end }}
    {{- if and .run $named }}
    - name: passwd
      configMap: {name: {{ include "streamapp-operator.analyticsName" $root }}}
    {{- end }}
{{- end }}
