{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "bivouac.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- /* One heap for all threads: an operator waits most of its life, and a heap per thread keeps memory that none of them uses. */}}
- name: MALLOC_ARENA_MAX
  value: "1"
- name: BIVOUAC_ADMIN_ADDRESS
  value: {{ printf "%s:%d" .Values.admin.host (int .Values.admin.port) | quote }}
- name: BIVOUAC_CONTROLLERS
  value: {{ .Values.controllers | quote }}
- name: BIVOUAC_LEADER_ELECT
  value: {{ .Values.leaderElection.enabled | quote }}
- name: BIVOUAC_LEASE_NAME
  value: {{ .Values.leaderElection.leaseName | quote }}
- name: BIVOUAC_LOG_FORMAT
  value: {{ .Values.log.format | quote }}
- name: BIVOUAC_LOG
  value: {{ .Values.log.filter | quote }}
- name: BIVOUAC_TENANCY_MANAGED_BY
  value: {{ .Values.tenancy.managedBy | quote }}
- name: BIVOUAC_TENANCY_PART_OF
  value: {{ .Values.tenancy.partOf | quote }}
- name: BIVOUAC_GANG
  value: {{ .Values.miniclusters.gang | quote }}
- name: BIVOUAC_GANG_HOLD
  value: {{ .Values.miniclusters.gangHold | quote }}
- name: BIVOUAC_GANG_THEN
  value: {{ .Values.miniclusters.gangThen | quote }}
- name: BIVOUAC_LABEL_ALL_PODS
  value: {{ .Values.miniclusters.labelAllPods | quote }}
- name: BIVOUAC_VIEW_BY_IMAGE
  value: {{ .Values.miniclusters.viewByImage | quote }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
