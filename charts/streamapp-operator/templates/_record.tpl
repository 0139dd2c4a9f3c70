{{- /* The flight record: variables, mounts and volumes of the operator's pods. Of a whole line on, and nothing where it is off. */ -}}

{{- define "streamapp-operator.recordEnvironment" -}}
{{- with .Values.record }}
{{- if .enabled -}}
- {name: STREAMAPP_RECORD_FOLDER, value: /var/lib/streamapp/record}
- {name: STREAMAPP_RECORD_BYTES, value: {{ int64 .bytes | quote }}}
- {name: STREAMAPP_RECORD_AGE_SECONDS, value: {{ int64 .ageSeconds | quote }}}
- {name: STREAMAPP_RECORD_CLOSE_SECONDS, value: {{ int64 .closeSeconds | quote }}}
- {name: STREAMAPP_RECORD_CLOSE_BYTES, value: {{ int64 .closeBytes | quote }}}
{{- if .kafka.bootstrapServers }}
- {name: STREAMAPP_RECORD_BOOTSTRAP, value: {{ .kafka.bootstrapServers | quote }}}
- {name: STREAMAPP_RECORD_TOPIC, value: {{ .kafka.topic | quote }}}
{{- if .kafka.configSecret }}
- {name: STREAMAPP_RECORD_CONFIG_FOLDER, value: /etc/streamapp/record-kafka}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.recordMounts" -}}
{{- with .Values.record }}
{{- if .enabled -}}
- {name: record, mountPath: /var/lib/streamapp/record}
{{- if and .kafka.bootstrapServers .kafka.configSecret }}
- {name: record-kafka, mountPath: /etc/streamapp/record-kafka, readOnly: true}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "streamapp-operator.recordVolumes" -}}
{{- with .Values.record }}
{{- if .enabled -}}
- name: record
  {{- if .volume.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .volume.existingClaim }}}
  {{- else }}
  # A pod whose emptyDir grows past its limit is evicted, so this one has room for more than is ever written.
  emptyDir: {sizeLimit: {{ include "streamapp-operator.recordRoom" $ | quote }}}
  {{- end }}
{{- if and .kafka.bootstrapServers .kafka.configSecret }}
# Without it nothing is sent to the topic, and scaling goes on.
- name: record-kafka
  secret: {secretName: {{ .kafka.configSecret }}, optional: true}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Bytes of the emptyDir: the files, one that grows between two looks at them, the copy that is made of one that was
left by a process that died, a block of 4 KiB for each file's last one and its folder's (there are two files at a time),
and what is written at once. */ -}}
{{- define "streamapp-operator.recordRoom" -}}
{{- with .Values.record }}
{{- $files := add 1 (div (int64 .ageSeconds) (int64 .closeSeconds)) }}
{{- add (int64 .bytes) (mul 2 (int64 .closeBytes)) (mul 8192 $files) 16777216 }}
{{- end }}
{{- end }}

{{- /* Something where the files lie in a claim that one node, or one pod, can have at a time. */ -}}
{{- define "streamapp-operator.recordClaimOfOne" -}}
{{- with .Values.record }}
{{- if and .enabled .volume.existingClaim (ne .volume.accessMode "ReadWriteMany") }}yes{{ end }}
{{- end }}
{{- end }}

{{- /* Refuses what the schema cannot: values that do not fit each other. */ -}}
{{- define "streamapp-operator.recordChecked" -}}
{{- if and (include "streamapp-operator.recordClaimOfOne" .) (gt (int .Values.replicas) 1) }}
{{- fail (printf "record.volume: a claim with %s serves pods on one node only: set replicas to 1, or take a claim with ReadWriteMany and say so in record.volume.accessMode, or leave existingClaim empty for an emptyDir in each pod" .Values.record.volume.accessMode) }}
{{- end }}
{{- with .Values.record }}
{{- if and .kafka.bootstrapServers (not .enabled) }}
{{- fail "record.kafka.bootstrapServers: nothing is sent while record.enabled is false: set that to true, or this to empty" }}
{{- end }}
{{- if and .kafka.configSecret (not .kafka.bootstrapServers) }}
{{- fail "record.kafka.configSecret: it serves no brokers: name some in record.kafka.bootstrapServers, or leave it empty" }}
{{- end }}
{{- if lt (int64 .bytes) (mul 2 (int64 .closeBytes)) }}
{{- fail "record.bytes: less than twice record.closeBytes would remove finished files while the next one is written: raise it, or lower record.closeBytes" }}
{{- end }}
{{- if le (int64 .ageSeconds) (int64 .closeSeconds) }}
{{- fail "record.ageSeconds: it must be more than record.closeSeconds, or files would go as soon as they are finished" }}
{{- end }}
{{- end }}
{{- end }}
